"""Check a data set against the chunkings of an experiment: split evidence, documents that all chunkings cut alike."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from harness.core.records import Evidence, Ints
from harness.data.checks import Finding
from harness.data.dataset import Dataset
from harness.data.record_files import read_queries
from harness.experiment.experiment import Experiment
from harness.experiment.trial import Trial
from harness.running.session import Session, store_folder


def suitability(experiment: Experiment, store: Path | str | None = None) -> Iterator[Finding]:
    """Yield findings on how an experiment's chunkings suit its data. Computes and stores the chunkings it needs.

    Each distinct chunking is checked once. Chunkings that still need calls to a model are skipped.
    """
    session = Session(experiment, store_folder(store, experiment.base_dir))
    chunkings: dict[str, Trial] = {}
    for trial in session.trials:
        outputs = session.outputs(trial)
        chunks = outputs.stages.chunks
        if not chunks.uses_models or chunks.done(outputs.work):
            chunkings.setdefault(chunks.address, trial)
    if not chunkings:
        return
    trials = list(chunkings.values())
    data = session.outputs(trials[0]).data
    cuts = [dict(_spans(session, trial)) for trial in trials]
    yield from _evidence_cut(session, data, cuts)
    yield from _same_chunks(session, data, cuts)


def _spans(session: Session, trial: Trial) -> Iterator[tuple[str, Ints]]:
    """The spans of each document's chunks, in characters: an array (chunks, 2) per document id."""
    outputs = session.outputs(trial)
    for doc, spans in outputs.stages.corpus.spans(outputs.work):
        yield doc.id, np.array(spans, np.int64).reshape(-1, 2)


def _evidence_cut(session: Session, data: Dataset, cuts: Sequence[dict[str, Ints]]) -> Iterator[Finding]:
    trial = session.trials[0]
    lines = {raw.id: str(raw.line) for raw in read_queries(session.manifest.query_set(trial.queries))}
    for query in data.query_set.queries:
        for at, item in enumerate(query.evidence):
            if item.whole:
                continue
            fraction = max(_largest_fraction(item, cut) for cut in cuts)
            if fraction < 1:
                length = item.places[0].end - item.places[0].start
                held = f"the best chunk holds {fraction:.0%} of it"
                message = f"query '{query.id}': evidence[{at}], {length} characters: {held}"
                yield Finding("evidence-cut", lines[query.id], message)


def _largest_fraction(item: Evidence, cut: dict[str, Ints]) -> float:
    """The largest fraction of any of the item's places that a single chunk holds."""
    best = 0.0
    for doc, start, end in item.places:
        chunks = cut.get(doc, np.zeros((0, 2), np.int64))
        shared = np.minimum(chunks[:, 1], end) - np.maximum(chunks[:, 0], start)
        best = max(best, float(shared.max(initial=0)) / (end - start))
    return best


def _same_chunks(session: Session, data: Dataset, cuts: Sequence[dict[str, Ints]]) -> Iterator[Finding]:
    if len(cuts) < 2:
        return
    same = sum(all(np.array_equal(cuts[0][doc.id], cut[doc.id]) for cut in cuts[1:]) for doc in data.documents)
    if 2 * same > len(data.documents):
        message = f"all {len(cuts)} chunkings cut {same:,} of {len(data.documents):,} documents alike"
        yield Finding("same-chunks", str(session.manifest.corpus.path), f"{message}; they differ on the others only")
