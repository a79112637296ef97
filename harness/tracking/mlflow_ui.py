"""The MLflow UI of a store as a process, with the page that it should be opened at."""

import contextlib
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from harness.core.errors import HarnessError
from harness.core.secrecy import redact
from harness.storage.files import explained, keep_file
from harness.tracking.mlflow_store import QUIET, newest_launch, sqlite_uri, view_link
from harness.tracking.ui_port import HOST, note_of, running_port


@contextlib.contextmanager
def served(database: Path | None, uri: str, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The UI of a store, which answers when the block begins and ends with it. Raises HarnessError if it cannot start.

    It has one worker and no job runner: it starts in seconds and uses half a gigabyte, instead of ten processes.
    """
    command = [sys.executable, "-P", "-m", "mlflow", "ui", "--workers", "1", "--uvicorn-opts", "--log-level warning"]
    command += ["--backend-store-uri", sqlite_uri(database) if database else uri, "--port", str(port)]
    environment = {**os.environ, **QUIET, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        try:
            _await(process, port, said)
            if database:
                with explained(database.parent):
                    keep_file(database.parent, note_of(database).name, str(port).encode())
            yield process
        finally:
            if database and running_port(database) == port:
                note_of(database).unlink(missing_ok=True)
            process.terminate()
            process.wait()


def front_page(uri: str, port: int) -> str:
    """Return the link to open: the leaderboard of the newest launch, else the list of experiments."""
    address = f"http://{HOST}:{port}"
    experiment = newest_launch(uri)
    return f"{address}/#/experiments" if experiment is None else view_link(address, experiment, "leaderboard")


def _await(process: "subprocess.Popen[bytes]", port: int, said: IO[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=1).read()
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    said.seek(0)
    lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    raise HarnessError(f"ui: MLflow did not start: {redact(lines[-1])[:200] if lines else 'without a word'}")
