"""Trackers: where launches, accepted baselines and scheduled runs are logged. The only door to MLflow."""

from harness.tracking.destinations import Destinations, open_tracker
from harness.tracking.records import (
    FinishedGate,
    FinishedLaunch,
    FinishedTrial,
    ReportOutput,
    ScheduledRun,
    TrendPoint,
)
from harness.tracking.tracker import Links, Tracker

__all__ = [
    "Destinations",
    "FinishedGate",
    "FinishedLaunch",
    "FinishedTrial",
    "Links",
    "ReportOutput",
    "ScheduledRun",
    "Tracker",
    "TrendPoint",
    "open_tracker",
]
