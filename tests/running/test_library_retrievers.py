"""Retrievers of LangChain and LlamaIndex as trials: scored as their raw output is, and each fault a failure."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from harness import ConfigError, Experiment, JudgeError, Trial, run
from harness.components.chunkers import Fixed, NoChunker
from harness.components.component import identity
from harness.components.retrievers import BM25, LangChain, LlamaIndex
from harness.core.records import Query
from harness.data.dataset import read_corpus
from harness.data.manifest import read_manifest
from harness.running.launch_result import Launch

OURS = Trial("garden", Fixed(size=20), BM25(depth=5), tokenizer="words", metrics=("recall@1", "recall@3"))

FACTORIES = '''
import json
from pathlib import Path

import faiss
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.schema import Document as LlamaDocument, NodeWithScore

from harness.components.embedders import Hashing
from harness.core.rankings import unit_rows

CORPUS = [json.loads(line) for line in Path({corpus!r}).read_text().splitlines()]
EMBED = Hashing(256)


class Nearest:
    """A FAISS index over texts."""

    def __init__(self, texts):
        self.index = faiss.IndexFlatIP(256)
        self.index.add(unit_rows(EMBED.embed(texts).vectors))

    def best(self, query, k):
        scores, numbers = self.index.search(unit_rows(EMBED.embed([query]).vectors), k)
        return list(zip(numbers[0].tolist(), scores[0].tolist()))


class Chain(BaseRetriever):
    documents: list
    nearest: object
    k: int = 6

    def _get_relevant_documents(self, query, *, run_manager):
        if "boom" in query:
            raise RuntimeError("the index is gone\\nfor good")
        return [self.documents[number] for number, _ in self.nearest.best(query, self.k)]


def chain(metadata=True):
    splitter = RecursiveCharacterTextSplitter(chunk_size=180, chunk_overlap=30, add_start_index=metadata)
    whole = [Document(one["text"], metadata={{"source": one["id"]}} if metadata else {{}}) for one in CORPUS]
    documents = splitter.split_documents(whole)
    return Chain(documents=documents, nearest=Nearest([one.page_content for one in documents]))


def chain_of_texts():
    return chain(metadata=False)


class Llama(LlamaRetriever):
    def __init__(self, nodes):
        super().__init__()
        self.nodes, self.nearest = nodes, Nearest([one.get_content() for one in nodes])

    def _retrieve(self, bundle):
        return [NodeWithScore(node=self.nodes[at], score=score) for at, score in self.nearest.best(bundle.query_str, 4)]


def llama():
    splitter = SentenceSplitter(chunk_size=40, chunk_overlap=0)
    return Llama(splitter.get_nodes_from_documents([LlamaDocument(text=one["text"], id_=one["id"]) for one in CORPUS]))


def broken():
    raise ValueError("no index here")
'''


@pytest.fixture
def factories(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a user's own, with retrievers over the garden."""
    name = f"garden_search_{tmp_path.name.replace('-', '_')}"
    text = (
        FACTORIES.replace("{corpus!r}", repr(str(garden_data / "corpus.jsonl"))).replace("{{", "{").replace("}}", "}")
    )
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module(name)


def launched(garden_data: Path, retriever: LangChain | LlamaIndex, folder: Path) -> Launch:
    trial = replace(OURS, data=str(garden_data), chunker=NoChunker(), retriever=retriever)
    return run(Experiment("t", trial, []), store=folder / "s", log=False)


def recall(query: Query, spans: list[tuple[str, int, int]], k: int) -> float:
    """Whether the first spans cover half of the only evidence; NaN without evidence."""
    if not query.evidence:
        return float("nan")
    (place,) = query.evidence[0].places
    covered = {at for doc, start, end in spans[:k] if doc == place.doc for at in range(start, end)}
    return float(2 * len(covered & set(range(place.start, place.end))) >= place.end - place.start)


def test_langchain_over_faiss(factories: ModuleType, garden_data: Path, tmp_path: Path) -> None:
    """With LangChain's splitter: by its metadata, and by the texts alone."""
    documents = {doc.id: doc.text for doc in read_corpus(read_manifest(garden_data))}
    raw = factories.chain()
    scores = []
    for function in ("chain", "chain_of_texts"):
        launch = launched(garden_data, LangChain(f"{factories.__name__}:{function}", depth=5), tmp_path)
        assert launch.session is not None
        queries = launch.session.outputs(launch.session.trials[0]).queries
        (result,) = launch.results
        for k in (1, 3):
            expected = []
            for query in queries:
                found = [
                    (one.metadata["source"], one.metadata["start_index"], one.page_content)
                    for one in raw.invoke(query.text)
                ]
                assert all(documents[doc][start : start + len(text)] == text for doc, start, text in found)
                expected.append(recall(query, [(doc, start, start + len(text)) for doc, start, text in found], k))
            assert np.array_equal(result.scores[f"recall@{k}"], expected, equal_nan=True)
        assert result.efficiency["unmapped"] == 0
        scores.append(result.mean("recall@3"))
    assert scores[0] == scores[1] > 0


def test_llama_index(factories: ModuleType, garden_data: Path, tmp_path: Path) -> None:
    """By the offsets of its nodes."""
    launch = launched(garden_data, LlamaIndex(f"{factories.__name__}:llama"), tmp_path)
    assert launch.session is not None
    raw = factories.llama()
    expected = []
    for query in launch.session.outputs(launch.session.trials[0]).queries:
        nodes = [one.node for one in raw.retrieve(query.text)]
        expected.append(recall(query, [(one.ref_doc_id, one.start_char_idx, one.end_char_idx) for one in nodes], 3))
    assert np.array_equal(launch.results[0].scores["recall@3"], expected, equal_nan=True)
    assert launch.results[0].mean("recall@3") > 0
    assert launch.results[0].efficiency["retrieve_p95_ms"] > 0


def test_faults(factories: ModuleType, garden_data: Path, tmp_path: Path) -> None:
    """Of the function, of the module, and of a query: one line each."""
    with pytest.raises(ConfigError, match=r"^retriever langchain: factory: .*:broken: ValueError: no index here; the"):
        launched(garden_data, LangChain(f"{factories.__name__}:broken"), tmp_path)
    with pytest.raises(ConfigError, match=r"factory: nowhere.search:x: ModuleNotFoundError: No module named 'nowhere'"):
        launched(garden_data, LangChain("nowhere.search:x"), tmp_path)
    with pytest.raises(ConfigError, match="factory: expected module:function"):
        launched(garden_data, LangChain("my_search.py"), tmp_path)
    lines = [json.loads(line) for line in (garden_data / "queries" / "validation.jsonl").read_text().splitlines()]
    lines[0]["text"] += " boom"
    (garden_data / "queries" / "validation.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = (garden_data / "manifest.yaml").read_text()
    pinned = read_manifest(garden_data).query_set("validation").sha256
    (garden_data / "manifest.yaml").write_text(manifest.replace(f"    sha256: {pinned}\n", ""))
    with pytest.raises(
        JudgeError, match=r"1 of 13 queries have no answer, such as RuntimeError: the index is gone for"
    ):
        launched(garden_data, LangChain(f"{factories.__name__}:chain"), tmp_path)


def test_the_source_of_the_function_decides(factories: ModuleType, tmp_path: Path) -> None:
    """What has changed is asked again."""
    retriever = LangChain(f"{factories.__name__}:chain")
    before = identity(retriever)
    with (tmp_path / f"{factories.__name__}.py").open("a") as file:
        file.write("# another chunk size\n")
    assert identity(retriever) != before
    assert identity(retriever)["facts"].keys() == {"langchain-core", "factory"}
