"""Judges' measures of a launch: means with their completeness, and notes on how far they can be trusted."""

import math
from collections.abc import Sequence

from harness.components.roles import Judge, judge_measures
from harness.evaluation.results import Judged
from harness.evaluation.stats import Variance
from harness.llm.answers import IN_WORDS
from harness.running.judging.judge_summary import JudgeSummary
from harness.running.judging.judge_variance import judge_variance
from harness.running.launch_result import Launch

TITLE = "judges: mean over queries (complete/all)"


def primary_measures(launch: Launch) -> list[str]:
    """Returns the first measure of each judge of the experiment."""
    found: dict[str, str] = {}
    for name, (label, _, _) in judge_measures(launch.experiment.base.judges).items():
        found.setdefault(label, name)
    return list(found.values())


def judge_table(launch: Launch) -> "object":
    """Returns the primary measure of each judge by trial, as a rich renderable."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    measures = primary_measures(launch)
    grid = Table(
        title=TITLE,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    grid.add_column("trial", overflow="fold")
    for name in measures:
        grid.add_column(name, justify="right", overflow="fold")
    for result in launch.results:
        grid.add_row(result.name, *(cell(result.judged[name]) for name in measures))
    return Group(grid, *(f"note: {note}" for note in judge_notes(launch)))


def judge_markdown(launch: Launch) -> str:
    """Returns the primary measure of each judge by trial as Markdown, for the note of a logged launch."""
    measures = primary_measures(launch)
    lines = [f"| trial | {' | '.join(measures)} |", "|" + "---|" * (len(measures) + 1)]
    for result in launch.results:
        name = result.name.replace("|", "\\|")
        lines.append(f"| {name} | {' | '.join(cell(result.judged[measure]) for measure in measures)} |")
    notes = [f"note: {note}  " for note in judge_notes(launch)]
    return "\n".join(["", TITLE, "", *lines, "", *notes]) + "\n"


def cell(judged: Judged) -> str:
    """Returns a mean with its completeness, and if judgments are missing, its bounds for all possible values of them.

    `0.412 (86/86)`, `0.412 (84/86) 0.402 … 0.427`, `withheld (60/86) 0.310 … 0.610`.
    """
    if not judged.total:
        return "not applicable"
    low, high = judged.bounds
    mean = "withheld" if math.isnan(judged.mean) else f"{judged.mean:.3f}"
    message = f"{mean} ({judged.complete}/{judged.total})"
    return message if judged.complete == judged.total else f"{message} {low:.3f} … {high:.3f}"


def notes_on(launch: Launch, measure: str) -> list[str]:
    """Returns the notes on the judge that computes `measure`."""
    label, judge, _ = judge_measures(launch.experiment.base.judges)[measure]
    return [
        note for summary in launch.judging_report.judges if summary.judge == label for note in _of_judge(summary, judge)
    ]


def judge_notes(launch: Launch) -> list[str]:
    """Returns the notes on all judges of the launch: calibration, failures, cost, missing judgments, circularity."""
    judges = launch.experiment.base.judges
    labelled = {label: judge for label, judge, _ in judge_measures(judges).values()}
    notes = []
    for summary in launch.judging_report.judges:
        notes += _of_judge(summary, labelled[summary.judge])
    spend = launch.judging_report.spend
    if spend.requests:
        tokens = f"{spend.prompt_tokens} tokens in ({spend.cached_tokens} cached), {spend.output_tokens} out"
        notes.append(f"usage: {spend.calls} calls in {spend.requests} requests, {tokens}, {spend.summary}")
    return [*notes, *_incomplete(launch), *_circular(launch)]


def _of_judge(summary: JudgeSummary, judge: Judge) -> list[str]:
    message = f"{summary.model}, {summary.calibration}" if judge.prompter else judge.caution()
    notes = [f"{summary.judge}: {message}"] if message else []
    if summary.calibration.startswith("uncalibrated"):
        notes[0] += "; interpret differences with care; `harness judge sample` starts a calibration"
    if summary.failures:
        most = sorted(summary.failures.items(), key=lambda one: (-one[1], one[0]))
        message = ", ".join(f"{count} {IN_WORDS[kind]}" for kind, count in most)
        missing = f"{sum(summary.failures.values())} of {summary.judgments} judgments missing"
        example = f"; for example: {summary.example}" if summary.example else ""
        notes.append(f"{summary.judge}: {missing}: {message}{example}")
    served = {name: count for name, count in summary.models.items() if name}
    if len(served) > 1:
        message = ", ".join(f"{name} {count}" for name, count in sorted(served.items()))
        notes.append(f"{summary.judge}: judgments come from several models under one name: {message}")
    if summary.flips is not None:
        notes.append(f"{summary.judge}: {100 * summary.flips:.1f} % of repeated judgments disagree")
    if summary.suspicious:
        notes.append(f"{summary.judge}: {summary.suspicious} judgments are of passages that seem to address the judge")
    if summary.empty:
        notes.append(f"{summary.judge}: {summary.empty} selections are empty and count as 0, without a call")
    return notes


def variance_notes(launch: Launch, number: int) -> list[str]:
    """Returns the variance components of the judges' means of trial `number`, for judges with repeated judgments."""
    if launch.judging is None or launch.session is None:
        return []
    found = judge_variance(launch.judging, launch.session.trials[number])
    return [f"{label} on '{launch.results[number].name}': {_variance(one)}" for label, one in found.items()]


def _variance(found: Variance) -> str:
    total = found.query + found.repeat
    if not total:
        return "all judgments are equal; more repeats or queries would change nothing"
    fractions = f"{found.query / total:.0%} of a judgment's variance is between queries, {found.repeat / total:.0%}"
    parts = [f"{fractions} between repeats"]
    if not math.isnan(found.order):
        parts.append(f"the order of the passages alone has a standard deviation of {math.sqrt(found.order):.3f}")
    more = f"{found.more_queries:.4f} with twice the queries, {found.more_repeats:.4f} with twice the repeats"
    parts.append(f"the standard error of the mean is {found.error:.4f}, and would be {more}")
    return "; ".join(parts)


def _incomplete(launch: Launch) -> list[str]:
    short = any(j.complete < j.total for result in launch.results for j in result.judged.values())
    return ["if judgments are missing, the range covers all their possible values"] if short else []


def _circular(launch: Launch) -> list[str]:
    """Notes on judges whose model is also used by a pipeline: a judge favours texts found with its own help."""
    judges = {summary.model for summary in launch.judging_report.judges if summary.model}
    used: Sequence[str] = sorted(
        {
            str(value)
            for result in launch.results
            for name, value in result.params.items()
            if name.endswith(".model") and not name.startswith("judge.")
        }
    )
    return [
        f"{model} judges a pipeline that uses the same model: these judgments are not independent"
        for model in used
        if model in judges
    ]
