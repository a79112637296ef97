"""The files and tags logged with a launch."""

import json

from harness.running.launch_result import Launch
from harness.tracking import ReportOutput
from reports import bins, columns
from reports.answer import answer
from reports.compare import compare
from reports.comparison import Comparison, as_json, markdown
from reports.comparison_columns import table_columns, tagged
from reports.comparison_row import Row
from reports.final import Final, final_scores, lines
from reports.judge_notes import judge_markdown
from reports.page import figures, page


def answered(comparison: Comparison, final: Final | None) -> str:
    """Returns the text before the table: the answer, and the finalists if the locked set has been used."""
    text = ["\n".join(f"{line}  " for line in lines(final))] if final else []
    return "\n\n".join([answer(comparison), *text, ""])


class ComparedReport:
    """Makes the report of a launch and keeps its comparison, so that it need not be computed again."""

    def __init__(self) -> None:
        self.comparison: Comparison | None = None

    def __call__(self, launch: Launch) -> ReportOutput:
        """Returns what is logged with the launch."""
        self.comparison = compare(launch)
        return launch_report(launch, self.comparison)


def launch_report(launch: Launch, comparison: Comparison | None = None) -> ReportOutput:
    """Returns the files of a launch by name, and tags for each trial; `comparison` is computed if it is not given.

    `report.html`, `comparison.md` and `.json`, `leaderboard.json` (a table), `recall_over_budget.svg`; also
    `score_bins.svg` and `.json` if a trial's scores are cosines.
    """
    comparison = comparison or compare(launch)
    final = final_scores(launch, comparison.metric)
    # By the lower bound of the mean: judge failures must not move a trial up.
    ordered = sorted(comparison.rows, key=lambda row: -row.mean_min)
    data = [[column.text(row) for column in table_columns()] for row in ordered]
    leaderboard = {"columns": [column.name for column in table_columns()], "data": data}
    show = launch.experiment.compare.show
    further = columns.markdown(launch, show) if show else ""
    judged = judge_markdown(launch) if launch.results[0].judged else ""
    files = {
        "comparison.md": (answered(comparison, final) + markdown(comparison) + further + judged).encode(),
        "comparison.json": as_json(comparison).encode(),
        "leaderboard.json": json.dumps(leaderboard, ensure_ascii=False).encode(),
        "recall_over_budget.svg": figures.standalone(figures.budget_curves(launch.results)).encode(),
        "report.html": page(launch, comparison, final).encode(),
    }
    if launch.score_bins:
        files |= {
            "score_bins.svg": figures.standalone(figures.bin_bars(launch.score_bins)).encode(),
            "score_bins.json": bins.as_json(launch.score_bins).encode(),
        }
    tags = {row.name: _tags(comparison, row) for row in comparison.rows}
    return ReportOutput(files, tags, {column.name: column.width for column in tagged()})


def _tags(comparison: Comparison, row: Row) -> dict[str, str]:
    """The comparison of one trial as tags."""
    return {
        "compared_on": comparison.metric,
        "baseline": comparison.baseline,
        **{column.name: column.tag(row) for column in tagged() if column.tag},
        "may_be_best": "yes" if row.may_be_best else "no",
    }
