"""`harness ui`: the MLflow UI for the tracking store."""

import argparse
import contextlib
import os
import signal
import sys

from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup, whole_number
from harness.core.errors import ConfigError, HarnessError


def add_ui_command(commands: CommandGroup) -> None:
    """Adds `harness ui`."""
    commands.add("ui", _ui, "start the MLflow UI for the tracking store, and open the newest leaderboard", _ui_options)


def _ui_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=whole_number, help="port of the UI (default: 5000, or the next free one)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--tracking",
        metavar="URI",
        help="MLflow tracking URI (default: MLFLOW_TRACKING_URI, else mlflow.db in the project)",
    )


def _ui(options: argparse.Namespace) -> int:
    from harness.core.secrecy import bare_address
    from harness.tracking.mlflow_store import default_uri, sqlite_file
    from harness.tracking.mlflow_ui import front_page, served
    from harness.tracking.ui_port import free_port

    uri = options.tracking or default_uri()
    if uri.startswith("http"):
        raise ConfigError(f"ui: {bare_address(uri)} is a server; open it in a browser")
    database = sqlite_file(uri)
    if database and not database.is_file():
        message = f"{database} does not exist"
        raise ConfigError(f"ui: {message}; run an experiment first, or name a store with --tracking")
    port = free_port(options.port)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with contextlib.suppress(KeyboardInterrupt), served(database, uri, port) as process:
        page = front_page(uri, port)
        print(f"{page}\n(Ctrl-C stops it)", flush=True)
        if not options.no_browser and _has_screen():
            import webbrowser

            webbrowser.open(page)
        if process.wait():
            raise HarnessError(f"ui: MLflow ended with exit code {process.returncode}")
    return OK


def _has_screen() -> bool:
    """Whether a browser would open in a window; without one, Python would start a browser in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
