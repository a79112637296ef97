"""What a launch means: the comparison of its trials, as records, tables and figures."""

from reports.compare import Comparison, Row, compare
from reports.frames import scores_frame
from reports.launch import launch_report

__all__ = ["Comparison", "Row", "compare", "launch_report", "scores_frame"]
