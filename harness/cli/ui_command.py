"""`harness ui`: the MLflow UI for the tracking store."""

import argparse
import os
import sys

from harness.cli.parser import CommandGroup, whole_number
from harness.core.errors import ConfigError


def add_ui_command(commands: CommandGroup) -> None:
    """Adds `harness ui`."""
    commands.add("ui", _ui, "start the MLflow UI for the tracking store", _ui_options)


def _ui_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=whole_number, default=5000, help="port of the UI (default 5000)")
    parser.add_argument(
        "--tracking",
        metavar="URI",
        help="MLflow tracking URI (default: MLFLOW_TRACKING_URI, else mlflow.db in the project)",
    )


def _ui(options: argparse.Namespace) -> int:
    from harness.core.secrecy import bare_address
    from harness.tracking.mlflow_store import QUIET, default_uri, sqlite_file, sqlite_uri

    uri = options.tracking or default_uri()
    if uri.startswith("http"):
        raise ConfigError(f"ui: {bare_address(uri)} is a server; open it in a browser")
    database = sqlite_file(uri)
    if database and not database.is_file():
        message = f"{database} does not exist"
        raise ConfigError(f"ui: {message}; run an experiment first, or name a store with --tracking")
    # One worker and no job runner: starts in seconds and uses half a gigabyte, instead of ten processes by default.
    environment = {**os.environ, **QUIET, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    command = [
        sys.executable,
        "-P",
        "-m",
        "mlflow",
        "ui",
        "--backend-store-uri",
        sqlite_uri(database) if database else uri,
        "--port",
        str(options.port),
        "--workers",
        "1",
    ]
    print(f"MLflow UI on http://127.0.0.1:{options.port} (Ctrl-C stops it)", flush=True)
    os.execve(sys.executable, command, environment)
