"""Faults of custom components: one line that names the component and its input, and exit code 2."""

from pathlib import Path

import pytest
from project import harness, one_line, project

HEAD = """\
import sys
from dataclasses import dataclass
import numpy as np
from harness.components import *


"""
CHUNKER = "@dataclass(frozen=True)\nclass Own(Chunker):\n    def split(self, doc):\n        {}\n"
AUGMENTER = "@dataclass(frozen=True)\nclass Own(Augmenter):\n    def augment(self, doc, spans):\n        {}\n"
EMBEDDER = (
    "@dataclass(frozen=True)\nclass Own(Embedder):\n    def embed(self, texts, *, queries=False):\n"
    "        n = len(texts)\n        good = np.ones((n, 3), np.float32), np.zeros(n, bool)\n        {}\n"
)
RETRIEVER = (
    "@dataclass(frozen=True)\nclass Own(Retriever):\n    depth: int = 3\n    uses_vectors = True\n"
    "    scale = 'unit'\n\n"
    "    def search(self, index, corpus, texts, vectors):\n"
    "        row = (np.array([0, 1]), np.array([0.9, 0.5]))\n        {}\n"
)
SELECTOR = "@dataclass(frozen=True)\nclass Own(Selector):\n    def select(self, query, hits):\n        {}\n"
RERANKER = "@dataclass(frozen=True)\nclass Own(Reranker):\n    def score(self, query, texts):\n        {}\n"
JUDGE = (
    "@dataclass(frozen=True)\nclass Own(Judge):\n    measures = ('own',)\n\n"
    "    def tasks(self, case):\n        return []\n\n"
    "    def score(self, case, judgments):\n        {}\n"
)
FAULTS = {
    "chunker ends the process": (CHUNKER, "sys.exit(0)", "chunker", ("chunker own: document 'bed0'", "sys.exit(0)")),
    "no chunks": (CHUNKER, "return []", "chunker", ("chunker own", "no chunk", "'bed0'")),
    "chunks outside": (CHUNKER, "return [(0, 10**6)]", "chunker", ("chunker own: document 'bed0'",)),
    "chunks of fractions": (CHUNKER, "return [(0.5, 9.5)]", "chunker", ("chunker own", "document 'bed0'")),
    "no spans": (CHUNKER, "return None", "chunker", ("chunker own", "document 'bed0'")),
    "augmenter ends the process": (AUGMENTER, "sys.exit()", "augmenter", ("augmenter own: document 'bed0'",)),
    "too few contexts": (AUGMENTER, "return []", "augmenter", ("augmenter own: document 'bed0'", "0 contexts")),
    "contexts that are numbers": (AUGMENTER, "return [1] * len(spans)", "augmenter", ("augmenter own", "'bed0'")),
    "spans changed": (AUGMENTER, "spans.pop(); return []", "augmenter", ("augmenter own: document 'bed0'", "changes")),
    "embedder ends the process": (EMBEDDER, "sys.exit(1)", "embedder", ("embedder own: text", "sys.exit(1)")),
    "vectors of zeros": (EMBEDDER, "return Embedded(good[0] * 0, good[1])", "embedder", ("embedder own", "zeros", "'")),
    "one dimension": (EMBEDDER, "return Embedded(np.ones(n), good[1])", "embedder", ("embedder own", "shape")),
    "complex": (EMBEDDER, "return Embedded(good[0] * 1j, good[1])", "embedder", ("embedder own", "complex")),
    "not a number": (
        EMBEDDER,
        "return Embedded(good[0] * np.nan, good[1])",
        "embedder",
        ("embedder own", "returned NaN"),
    ),
    "vectors too great": (
        EMBEDDER,
        "return Embedded(good[0] * 3e38, good[1])",
        "embedder",
        ("embedder own", "too large"),
    ),
    "vectors far too great": (
        EMBEDDER,
        "return Embedded(good[0].astype(float) * 1e300, good[1])",
        "embedder",
        ("embedder own", "too large"),
    ),
    "a row too few": (EMBEDDER, "return Embedded(good[0][1:], good[1])", "embedder", ("embedder own", "shape")),
    "dimensions change": (
        EMBEDDER,
        "return Embedded(np.ones((n, 4 if queries else 3), np.float32), good[1])",
        "embedder",
        ("embedder own", "4 dimensions", "3 for other"),
    ),
    "texts changed": (
        EMBEDDER,
        "texts.clear(); return Embedded(*good)",
        "embedder",
        ("embedder own", "changes a list"),
    ),
    "no Embedded": (EMBEDDER, "return good[0]", "embedder", ("embedder own", "Embedded")),
    "retriever ends the process": (RETRIEVER, "sys.exit(0)", "retriever", ("retriever own", "sys.exit(0)")),
    "corpus changed": (RETRIEVER, "corpus[0] = 0; return None", "retriever", ("retriever own", "changes an array")),
    "rankings missing": (RETRIEVER, "return Rankings.of([row])", "retriever", ("retriever own", "1 queries instead")),
    "no rankings": (RETRIEVER, "return None", "retriever", ("retriever own", "Rankings")),
    "scores out of scale": (
        RETRIEVER,
        "return Rankings.of([(row[0], row[1] * 9)] * len(texts))",
        "retriever",
        ("retriever own: query 'bed0-2'", "0 to 1"),
    ),
    "a chunk that is not there": (
        RETRIEVER,
        "return Rankings.of([(row[0] + 10**6, row[1])] * len(texts))",
        "retriever",
        ("retriever own: query 'bed0-2'", "chunk number"),
    ),
    "ids of fractions": (
        RETRIEVER,
        "return Rankings.of([(row[0] + 0.9, row[1])] * len(texts))",
        "retriever",
        ("retriever own", "integer chunk numbers"),
    ),
    "complex scores of hits": (
        RETRIEVER,
        "return Rankings.of([(row[0], row[1] * 1j)] * len(texts))",
        "retriever",
        ("retriever own", "real scores"),
    ),
    "scores of another length": (
        RETRIEVER,
        "return Rankings.of([(row[0], row[1][:1])] * len(texts))",
        "retriever",
        ("retriever own", "of equal length"),
    ),
    "no row": (RETRIEVER, "return Rankings.of([None] * len(texts))", "retriever", ("retriever own", "row 0")),
    "an index of objects": (
        RETRIEVER + "\n    def index(self, texts, corpus=None):\n        return Artifact({{'a': np.array([None])}})\n",
        "return None",
        "retriever",
        ("retriever own: index", "'a'"),
    ),
    "an index that is none": (
        RETRIEVER + "\n    def index(self, texts, corpus=None):\n        return None\n",
        "return None",
        "retriever",
        ("retriever own: index", "Artifact"),
    ),
    "an index of a set": (
        RETRIEVER + "\n    def index(self, texts, corpus=None):\n        return Artifact({{}}, {{1, 2}})\n",
        "return None",
        "retriever",
        ("retriever own: index", "JSON"),
    ),
    "a chunk twice": (
        RETRIEVER,
        "return Rankings.of([(row[0] * 0, row[1])] * len(texts))",
        "retriever",
        ("retriever own: query 'bed0-2'", "twice"),
    ),
    "selector ends the process": (SELECTOR, "sys.exit(3)", "selector", ("selector own: query 'bed0-2'", "sys.exit(3)")),
    "hits changed": (SELECTOR, "hits.pop(); return Outcome(hits, [])", "selector", ("selector own: query 'bed0-2'",)),
    "hits forgotten": (
        SELECTOR,
        "return Outcome([], [])",
        "selector",
        ("selector own: query 'bed0-2'", "neither kept"),
    ),
    "hits that are numbers": (SELECTOR, "return Outcome([1, 2], [])", "selector", ("selector own: query 'bed0-2'",)),
    "an outcome of nothing": (SELECTOR, "return Outcome(None, None)", "selector", ("selector own: query 'bed0-2'",)),
    "no outcome": (SELECTOR, "return hits", "selector", ("selector own: query 'bed0-2'", "Outcome")),
    "scores of two dimensions": (
        RERANKER,
        "return np.ones((len(texts), 2))",
        "selector",
        ("selector own: query", "shape"),
    ),
    "complex scores": (RERANKER, "return np.ones(len(texts)) * 1j", "selector", ("selector own: query", "number")),
    "a score too few": (RERANKER, "return np.ones(len(texts) - 1)", "selector", ("selector own: query", "shape")),
    "judge ends the process": (JUDGE, "sys.exit(0)", "judge", ("judge own: query 'bed0-2'", "sys.exit(0)")),
    "a score of 3": (
        JUDGE,
        "return Verdict({'own': Score.exactly(3.0)})",
        "judge",
        ("judge own: query 'bed0-2'", "0 to 1"),
    ),
    "a score that is no number": (
        JUDGE,
        "return Verdict({'own': Score.exactly(float('nan'))})",
        "judge",
        ("judge own: query 'bed0-2'", "0 to 1"),
    ),
    "a score outside its bounds": (
        JUDGE,
        "return Verdict({'own': Score(0.9, 0.1, 0.5)})",
        "judge",
        ("judge own: query 'bed0-2'", "bounds"),
    ),
    "rank 0": (
        JUDGE,
        "return Verdict({'own': Score.exactly(1.0)}, (Finding(0, '', (Label(1),)),))",
        "judge",
        ("judge own: query 'bed0-2'", "rank 0"),
    ),
    "no verdict": (JUDGE, "return 1.0", "judge", ("judge own: query 'bed0-2'", "Verdict")),
    "a score that is a number": (
        JUDGE,
        "return Verdict({'own': 0.5})",
        "judge",
        ("judge own: query 'bed0-2'", "Score"),
    ),
    "findings of text": (
        JUDGE,
        "return Verdict({'own': Score.exactly(1.0)}, ('a',))",
        "judge",
        ("judge own: query 'bed0-2'", "findings"),
    ),
    "tasks of numbers": (JUDGE.replace("return []", "return [1]"), "return None", "judge", ("judge own", "Tasks")),
    "another measure": (JUDGE, "return Verdict({'x': None})", "judge", ("judge own: query 'bed0-2'", "own")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_components(
    name: str, garden_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2, nothing scored; run in this process through the command line."""
    from harness.cli import main

    template, body, slot, parts = FAULTS[name]
    (tmp_path / "own.py").write_text(HEAD + template.format(body))
    slots = {"chunker": "{fixed: {size: 20}}", "retriever": "{bm25: {depth: 5}}", "selector": "[{top_k: {k: 3}}]"}
    slots |= {"embedder": "{hashing: {dimensions: 16}}"}
    if slot == "embedder":
        slots["retriever"] = "{dense: {depth: 3}}"
    slots[slot] = "[own.py:Own]" if slot in ("selector", "judge") else "own.py:Own"
    lines = [f"{'judges' if key == 'judge' else key}: {value}" for key, value in slots.items()]
    text = "\n".join(["name: own", "data: garden", "tokenizer: words", "metrics: [recall@3]", *lines])
    (tmp_path / "x.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "x.yaml", "--no-mlflow", "--store", "s"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    for part in parts:
        assert part in said, said
    assert not list((tmp_path / "s").glob("launches/*.json"))


def test_a_component_that_ends_a_worker(garden_data: Path, tmp_path: Path) -> None:
    """In a worker process: the same line, and no result."""
    (tmp_path / "own.py").write_text(HEAD + CHUNKER.format("sys.exit(0)"))
    project(tmp_path, None, **{"chunker: {fixed: {size: 20}}\nretriever": "chunker: own.py:Own\nretriever"})
    text = (tmp_path / "x.yaml").read_text()
    (tmp_path / "x.yaml").write_text(text[: text.index("grid:")])
    one_line(harness(tmp_path, "run", "x.yaml", "--no-mlflow", "--workers", "2", code=2), "chunker own", "sys.exit(0)")


def test_a_broken_pipe_of_a_component_is_its_fault(garden_data: Path, tmp_path: Path) -> None:
    """Unlike the broken pipe of `| head`, which is none."""
    (tmp_path / "own.py").write_text(HEAD + CHUNKER.format("raise BrokenPipeError(32, 'Broken pipe')"))
    project(tmp_path, None, **{"chunker: {fixed: {size: 20}}\nretriever": "chunker: own.py:Own\nretriever"})
    text = (tmp_path / "x.yaml").read_text()
    (tmp_path / "x.yaml").write_text(text[: text.index("grid:")])
    done = harness(tmp_path, "run", "x.yaml", "--no-mlflow", code=2, traceback=True)
    assert "chunker own: document 'bed0': BrokenPipeError" in done.stderr


def test_a_component_that_exits_while_it_is_imported(garden_data: Path, tmp_path: Path) -> None:
    """Exit code 0 would look like success."""
    (tmp_path / "own.py").write_text("import sys\nsys.exit(0)\n")
    project(tmp_path, None, **{"chunker: {fixed: {size: 20}}\nretriever": "chunker: own.py:Own\nretriever"})
    one_line(harness(tmp_path, "run", "x.yaml", "--no-mlflow", code=2), "own.py:2", "ended the process")
