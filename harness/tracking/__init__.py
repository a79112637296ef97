"""The only door to MLflow: launches, accepted baselines, and the trend of nights."""

from harness.tracking.mlflow_store import QUIET, MlflowExperiment, default_uri, sqlite_file, sqlite_uri
from harness.tracking.tracker import FinishedLaunch, FinishedTrial, Tracker
from harness.tracking.trends import Night, Nights

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
