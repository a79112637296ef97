"""The interface to MLflow: launches, accepted baselines, and the trends of scheduled runs."""

from harness.tracking.mlflow_store import QUIET, MlflowExperiment, default_uri, sqlite_file, sqlite_uri
from harness.tracking.tracker import FinishedLaunch, FinishedTrial, Tracker
from harness.tracking.trends import ScheduledRun, ScheduledRuns

__all__ = [
    "QUIET",
    "FinishedLaunch",
    "FinishedTrial",
    "MlflowExperiment",
    "ScheduledRun",
    "ScheduledRuns",
    "Tracker",
    "default_uri",
    "sqlite_file",
    "sqlite_uri",
]
