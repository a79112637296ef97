"""Times the stages of an experiment on samples of its data, so that a plan needs no earlier launch."""

import contextlib
import json
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from harness.components.augmenters.none import NoContext
from harness.components.embedders.hashing import Hashing
from harness.components.roles import BaseReranker
from harness.core.text_files import json_lines
from harness.data.manifest import Manifest, PinnedFile, write_manifest
from harness.data.record_files import records
from harness.experiment.experiment import Experiment, TrialSet
from harness.experiment.settings import Compare
from harness.experiment.trial import Trial
from harness.running.execution import Execution
from harness.running.executors import Engine
from harness.running.models import Models, answers_of
from harness.running.planning.model_timing import time_embedder, time_reranker
from harness.running.session import Session
from harness.running.stages.embed import TextsToEmbed, pace_kind
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.rerank import rerank_pace
from harness.storage.bucket import address_of, bucket_of, local_folder
from harness.storage.paces import Paces

SAMPLES = "samples"
"""The folder of the store in which samples are while they are timed."""

_BYTES, _QUERIES = 1_000_000, 100
"""The size of the larger samples."""
_SMALLER = 4
"""How many times smaller the smaller ones are."""
_DIMENSIONS = 384
"""Of the vectors that stand for those of a model, where nothing is known about its own."""


class Size(NamedTuple):
    """The size of data: bytes of documents, and queries."""

    documents: int
    queries: int


def time_sample(session: Session, texts: Sequence[TextsToEmbed], engine: Engine) -> None:
    """Time the stages, embedders and local rerankers of an experiment, and keep the paces for the whole data.

    The stages of all trials run on four samples, of more or fewer documents and queries, in a store of their own. No
    model is asked: vectors of the same size are made by hashing, contexts of language models and reranking are left
    out. Trials whose chunks a language model decides, and recorded runs, cannot be timed.
    """
    paces = Paces(session.store)
    for wanted in texts:
        if not wanted.embedder.metered:
            time_embedder(wanted, paces, engine)
    for trial in session.trials:
        for step in _local_rerankers(trial) if not trial.chunker.prompter else ():
            if rerank_pace(step) not in paces.noted:
                time_reranker(step, session.outputs(trial), paces, engine)
    whole = Size(session.corpus_bytes, max(len(_chosen(session, name)) for name in session.query_sets))
    larger = Size(min(_BYTES, whole.documents), min(_QUERIES, whole.queries))
    smaller = Size(larger.documents // _SMALLER, max(1, larger.queries // _SMALLER))
    wanted_sizes = [
        Size(documents, queries)
        for documents in (smaller.documents, larger.documents)
        for queries in (smaller.queries, larger.queries)
    ]
    dimensions = _dimensions(session, paces)
    measured = [_measured(session, size, dimensions, engine) for size in wanted_sizes]
    for kind in {kind for _, found in measured for kind in found}:
        values = [(size, found[kind]) for size, found in measured if kind in found]
        paces.note(kind, whole.documents, extrapolated(values, whole))
    paces.save()


def extrapolated(values: Sequence[tuple[Size, float]], whole: Size) -> float:
    """Return what a stage takes on the whole data, by what it took on samples.

    The model is a + b·documents + c·queries + d·documents·queries, none of them negative (Lawson & Hanson, Solving
    Least Squares Problems, 1974, chapter 23).
    """
    rows = [_terms(size.documents / whole.documents, size.queries / whole.queries) for size, _ in values]
    factors, _ = nnls(np.array(rows), np.array([value for _, value in values]))
    return float(factors.sum())


def _terms(documents: float, queries: float) -> list[float]:
    return [1.0, documents, queries, documents * queries]


def _local_rerankers(trial: Trial) -> list[BaseReranker]:
    steps = (step.reranker for step in trial.selector)
    return [step for step in steps if step is not None and not step.metered and step.prompter is None]


def _dimensions(session: Session, paces: Paces) -> int:
    """The dimensions of the vectors of the experiment's embedder, if they are known."""
    embedders = [trial.embedder for trial in session.trials if trial.uses_vectors]
    known = (paces.expected(f"dimensions {pace_kind(embedder)}", 1) for embedder in embedders)
    stored = (session.outputs(trial).work.vectors.size(trial.embedder)[1] for trial in session.trials)
    return int(next((found for found in (*known, *stored) if found), _DIMENSIONS))


def _measured(session: Session, size: Size, dimensions: int, engine: Engine) -> tuple[Size, Mapping[str, float]]:
    """The actual size of a sample, and what each kind of stage took on it: seconds, and bytes of the output."""
    with _store(session.store) as store:
        manifest = _sample(session, size, store / "data")
        trials = [made for trial in session.trials if (made := _without_models(trial, manifest.root, dimensions))]
        if not trials:
            return size, {}
        params = tuple(f"sample {at}" for at in range(len(trials)))
        experiment = Experiment("sample", trials[0], compare=Compare(), trial_set=TrialSet(tuple(trials), params))
        sampled = Session(replace(experiment, base_dir=session.experiment.base_dir), store)
        before = engine.parcel
        sampled.send_to(engine)
        paces = Paces(store)
        caller = Models(offline=True).caller(answers_of(sampled))
        execution = Execution(sampled.graph(), engine, ModelAccess(caller, None, lambda _: None, paces), 1)
        execution.finish()
        engine.parcel = before
        found = {kind: taken for kind, taken in paces.noted.items() if kind.startswith(("stage ", "bytes "))}
        queries = max(len(_chosen(sampled, name)) for name in sampled.query_sets)
        return Size(sampled.corpus_bytes, queries), found


def _without_models(trial: Trial, data: Path, dimensions: int) -> Trial | None:
    """The trial on a sample, without what a model does; None if it cannot be run so."""
    if trial.chunker.prompter or any(part.recorded for part in (trial.retriever, *trial.retriever.parts)):
        return None
    return replace(
        trial,
        data=str(data),
        augmenter=NoContext() if trial.augmenter.prompter else trial.augmenter,
        embedder=Hashing(dimensions=dimensions),
        selector=tuple(step for step in trial.selector if step.reranker is None),
        judges=(),
        limit=None,
    )


@contextlib.contextmanager
def _store(store: Path) -> Iterator[Path]:
    """A store beside what the store contains, where the same machines see it; it is removed after the block."""
    folder = local_folder(f"{address_of(store)}/{SAMPLES}/{secrets.token_hex(8)}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        bucket = bucket_of(folder)
        if bucket is not None:
            bucket.remove([entry.name for entry in bucket.entries()])
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another plan is at it
            folder.parent.rmdir()


def _chosen(session: Session, name: str) -> list[dict[str, Any]]:
    """The lines of a query set, as far as the trials use them."""
    lines = [value for _, value in json_lines(session.manifest.query_set(name).path)]
    return lines[: session.trials[0].limit]


def _sample(session: Session, size: Size, folder: Path) -> Manifest:
    """A data set with every n-th query, the documents that these cite, and others, chosen by hashes of their ids."""
    folder.mkdir(parents=True)
    queries, cited = dict[str, PinnedFile](), set[str]()
    for name in session.query_sets:
        lines = _chosen(session, name)
        kept = lines[:: max(1, len(lines) // size.queries)][: size.queries]
        cited.update(doc for line in kept for doc in _cited(line))
        queries[name] = PinnedFile(folder / f"{len(queries)}.jsonl", "")
        _write(queries[name].path, kept)
    share = size.documents / session.corpus_bytes * 2**32
    documents = (value for _, value in records(session.manifest.corpus.path))
    corpus = PinnedFile(folder / "corpus.jsonl", "")
    _write(corpus.path, (one for one in documents if one["id"] in cited or zlib.crc32(_bytes(one["id"])) < share))
    write_manifest(Manifest(folder, "sample", corpus, queries, copies=session.manifest.copies))
    return Manifest(folder, "sample", corpus, queries)


def _cited(query: Mapping[str, Any]) -> Iterator[str]:
    """The documents that a query names."""
    for item in query.get("evidence", ()):
        yield item["doc"]
        yield from (place["doc"] for place in item.get("also", ()))
    for key in ("ignore", "irrelevant", "unjudged"):
        yield from query.get(key, ())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _write(path: Path, lines: Any) -> None:
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
