"""The pool of judged passages: how much of what each trial ranks first was judged, and what other trials have too."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.components.component import step_labels
from harness.core.records import Query
from harness.evaluation.metrics import split_metric
from harness.evaluation.metrics.matching import Passage
from harness.running.judging.judging import Judging
from harness.running.launch_result import Launch
from harness.running.trial_outputs import TrialOutputs

_DEPTH = 10
"""Passages of a query that are looked at if neither the primary metric nor a judge has a rank as its cutoff."""

ASSESSORS = "data set"
"""The name under which judgments of the data set are counted."""


class Pooled(NamedTuple):
    """The first passages of a trial: their number over all queries, and fractions of it.

    `judged` has, by judge, those with a judgment, of the queries and ranks that it judges; under `ASSESSORS`, those of
    documents that were judged relevant or not. `only` are those that no other of the trials has among its first.
    """

    trial: str
    passages: int
    judged: Mapping[str, float]
    only: float


class Pool(NamedTuple):
    """The pool of the first `depth` passages of trials; `distinct` is their number without repetitions by query."""

    depth: int
    trials: Sequence[Pooled]
    distinct: int


def pool_of(launch: Launch, metric: str, numbers: Sequence[int]) -> Pool | None:
    """Returns the pool of some trials, given by number; None if nothing is judged passage by passage.

    The depth is the rank that is the cutoff of the metric, else that of a judge, else 10.
    """
    session = launch.session
    if session is None:
        return None
    depth = _depth(launch, metric)
    outputs = {session.names[at]: session.outputs(session.trials[at]) for at in numbers}
    judged = {name: _judged(made, launch.judging, depth) for name, made in outputs.items()}
    if not any(judged.values()):
        return None
    counts: Counter[tuple[str, str]] = Counter()
    texts = {}
    for name, made in outputs.items():
        texts[name] = {
            (query.id, made.work.text(one.doc, one.start, one.end))
            for at, query in enumerate(made.queries)
            for one in made.selections.kept(at)[:depth]
        }
        counts.update(texts[name])
    trials = [
        Pooled(
            name,
            sum(len(made.selections.kept(at)[:depth]) for at in range(len(made.queries))),
            {source: known / max(1, total) for source, (known, total) in judged[name].items()},
            sum(counts[one] == 1 for one in texts[name]) / max(1, len(texts[name])),
        )
        for name, made in outputs.items()
    ]
    return Pool(depth, trials, len(counts))


def _depth(launch: Launch, metric: str) -> int:
    cuts = [] if metric in launch.results[0].judged else [split_metric(metric).k]
    cuts += [judge.k for judge in launch.experiment.base.judges]
    return next((k for k in cuts if k), _DEPTH)


def _judged(made: TrialOutputs, judging: Judging | None, depth: int) -> dict[str, tuple[int, int]]:
    """How many of the first passages of a trial were judged, of how many, by judge.

    A judge counts the queries that it has a score for, and the ranks that it looks at. Judges who judge no single
    passage are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    kept = [made.selections.kept(at)[:depth] for at in range(len(made.queries))]
    if any(query.irrelevant for query in made.queries):  # else, the data set lists evidence only
        pairs = [pair for pair in zip(made.queries, kept, strict=True) if pair[0].evidence]
        found[ASSESSORS] = sum(_assessed(*pair) for pair in pairs), sum(len(row) for _, row in pairs)
    cuts = dict(zip(step_labels(made.stages.trial.judges), made.stages.trial.judges, strict=True))
    for verdicts, row in zip(judging.verdicts(made.stages.trial) if judging else (), kept, strict=False):
        for label, verdict in verdicts.items():
            cut = min(depth, cuts[label].k or depth)
            ranked = [one for one in verdict.findings if one.rank is not None and one.rank <= cut]
            scored = any(score is not None for score in verdict.scores.values())
            if scored and (ranked or label in found):
                known, total = found.get(label, (0, 0))
                known += sum(len(one.failures) < len(one.judgments) for one in ranked)
                found[label] = known, total + len(row[:cut])
    return found


def _assessed(query: Query, kept: Sequence[Passage]) -> int:
    known = {*query.irrelevant, *(place.doc for item in query.evidence for place in item.places)}
    return sum(one.doc in known for one in kept)
