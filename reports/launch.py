"""The files kept beside a launch in MLflow."""

import json

from harness.launch import Launch
from harness.results import withheld_last
from reports.compare import compare
from reports.figure import recall_over_budget
from reports.judging import judge_markdown
from reports.tables import as_json, cells, markdown

_COLUMNS = ("trial", "mean", "interval", "difference", "difference_interval", "verdict", "lost_mostly", "tokens")


def launch_report(launch: Launch) -> dict[str, bytes]:
    """`comparison.md`, `comparison.json`, `leaderboard.json` (an MLflow table) and `recall_over_budget.png`."""
    comparison = compare(launch)
    ordered = sorted(comparison.rows, key=lambda row: -withheld_last(row.mean))
    leaderboard = {"columns": list(_COLUMNS), "data": [list(cells(row)) for row in ordered]}
    return {
        "comparison.md": (markdown(comparison) + (judge_markdown(launch) if launch.results[0].judged else "")).encode(),
        "comparison.json": as_json(comparison).encode(),
        "leaderboard.json": json.dumps(leaderboard, ensure_ascii=False).encode(),
        "recall_over_budget.png": recall_over_budget(launch.results, launch.experiment.question),
    }
