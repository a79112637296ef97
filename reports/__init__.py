"""Analysis of a launch: the comparison of its trials, the report, and the regression gate."""

from reports.compare import compare
from reports.comparison import Best, Comparison
from reports.comparison_row import Row
from reports.frames import scores_frame
from reports.gate_result import GateResult
from reports.gate_run import accept_launch, gate
from reports.launch_files import ComparedReport, launch_report
from reports.notebook import Plot, View, register_views
from reports.report import Report, report

__all__ = [
    "Best",
    "ComparedReport",
    "Comparison",
    "GateResult",
    "Plot",
    "Report",
    "Row",
    "View",
    "accept_launch",
    "compare",
    "gate",
    "launch_report",
    "report",
    "scores_frame",
]

register_views()
