"""The only door to MLflow: launches, accepted baselines, and the trend of nights."""

from harness.tracking.nights import Night, Nights
from harness.tracking.store import QUIET, MlflowExperiment, default_uri, sqlite_file, sqlite_uri
from harness.tracking.tracker import FinishedLaunch, FinishedTrial, Tracker

__all__ = [
    "QUIET",
    "FinishedLaunch",
    "FinishedTrial",
    "MlflowExperiment",
    "Night",
    "Nights",
    "Tracker",
    "default_uri",
    "sqlite_file",
    "sqlite_uri",
]
