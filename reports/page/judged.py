"""The sections of the page about judges, and about what they have judged."""

from collections.abc import Iterator

from harness.running.launch_result import Launch
from reports.comparison import LISTED, Comparison
from reports.judge_notes import cell, judge_notes, primary_measures, variance_notes
from reports.page.parts import Beside, Cell, Line, Notes, Part, Table, Text
from reports.page.tables import heat, number, trial_line
from reports.pool import pool_of


def judges(launch: Launch, comparison: Comparison) -> Iterator[Part]:
    """Yields the means of the judges, and how far they can be trusted."""
    if not launch.results[0].judged:
        return
    measures = primary_measures(launch)
    yield Text(
        "Means over queries (complete/all). If judgments are missing, the range covers all their possible values."
    )
    rows = [
        trial_line(r.name, [Cell(cell(r.judged[name]), number(r.judged[name].mean)) for name in measures])
        for r in launch.results
    ]
    means = Table(("trial", *measures), rows)
    head = ("judge", "model", "judgments", "missing", "calibration", "flips", "cost")
    best = next(at for at, row in enumerate(comparison.rows) if row.name == comparison.best.name)
    notes = Notes([*judge_notes(launch), *variance_notes(launch, best)])
    yield Beside([means], [Table(head, list(_judge_rows(launch))), notes])


def pooled(launch: Launch, comparison: Comparison) -> Iterator[Part]:
    """Yields how much of the first passages of each trial was judged."""
    pool = pool_of(launch, comparison.metric, sorted(comparison.by_importance[:LISTED]))
    if pool is None:
        return
    yield Text(
        f"How much of the first {pool.depth} passages of each trial was judged, of the queries that are scored and the "
        "ranks that a judge looks at. Judges see each distinct passage of a query once, whichever trials selected it, "
        "in an order that depends on its text alone. What is missing counts as not relevant by the data set, and "
        f"widens the bounds of a judge's mean. All together have {pool.distinct:,} distinct passages; the last column "
        "says how many only this one of them has."
    )
    sources = list(dict.fromkeys(source for one in pool.trials for source in one.judged))
    rows = []
    for one in pool.trials:
        shares = [*(one.judged.get(source, 0.0) for source in sources), one.only]
        cells = [Cell(f"{one.passages:,}", one.passages), *(Cell(f"{share:.1%}", share) for share in shares)]
        rows.append(trial_line(one.trial, cells, ["", *heat(shares[:-1]), ""]))
    yield Table(("trial", "passages", *(f"judged: {source}" for source in sources), "in no other"), rows)


def _judge_rows(launch: Launch) -> Iterator[Line]:
    """Completeness, calibration and cost of each judge."""
    for one in launch.judging_report.judges:
        missing = sum(one.failures.values())
        cost = "" if not one.model else f"${one.paid:.4f}"
        if one.unpriced:
            cost += f" and {one.unpriced} calls of unknown cost"
        flips = "" if one.flips is None else f"{one.flips:.1%}"
        texts = (one.judge, one.model or "no model", f"{one.judgments:,}", f"{missing:,}", one.calibration, flips, cost)
        yield Line([Cell(text, None, "" if at in (2, 3, 5) else "left") for at, text in enumerate(texts)])
