"""`harness ui`: a free port, which printed links name, and one line if it cannot start."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from project import EXPERIMENT, HARNESS, environment, harness, one_line

from harness.core.errors import HarnessError
from harness.tracking.ui_port import FIRST, free_port, note_of, running_port


def test_a_free_port() -> None:
    """The wanted one if it is free; one line if it is not."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        used = taken.getsockname()[1]
        with pytest.raises(HarnessError, match=f"^ui: port {used} is in use"):
            free_port(used)
    assert free_port(used) == used
    assert free_port() >= FIRST
    with pytest.raises(HarnessError, match="^ui: port 99999 is in use or not allowed"):
        free_port(99999)


def test_the_port_that_is_noted(tmp_path: Path) -> None:
    """It counts only while something answers there."""
    database = tmp_path / "mlflow.db"
    assert running_port(database) is None
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        note_of(database).write_text(str(port))
        assert running_port(database) == port
    assert running_port(database) is None
    note_of(database).write_text("no port")
    assert running_port(database) is None


def test_links_lead_to_the_ui_that_runs(garden_data: Path, tmp_path: Path, tracking: str) -> None:
    """A run beside it prints its port; it opens the newest leaderboard; when stopped, it leaves nothing."""
    (tmp_path / "x.yaml").write_text(EXPERIMENT % "")
    harness(tmp_path, "run", "x.yaml", "--tracking", tracking)
    port = free_port()
    ui = subprocess.Popen(
        [str(HARNESS), "ui", "--tracking", tracking, "--port", str(port), "--no-browser"],
        cwd=tmp_path,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert ui.stdout is not None
        page = ui.stdout.readline().strip()
        assert re.fullmatch(
            rf"http://127.0.0.1:{port}/#/experiments/\d+/runs\?workflowType=machine_learning&viewStateShareKey=leaderboard",
            page,
        )
        out = harness(tmp_path, "run", "x.yaml", "--tracking", tracking).stdout
        assert page in out
        busy = harness(tmp_path, "ui", "--tracking", tracking, "--port", str(port), code=None)
        one_line(busy, f"ui: port {port} is in use")
    finally:
        os.kill(ui.pid, signal.SIGTERM)
        _, errors = ui.communicate()
    assert (ui.returncode, errors) == (0, "")
    assert not note_of(tmp_path / "mlflow.db").exists()


def test_a_store_that_is_none(tmp_path: Path) -> None:
    """One line, not MLflow's traceback."""
    (tmp_path / "mlflow.db").write_text("not a database" * 100)
    done = harness(
        tmp_path, "ui", "--tracking", f"sqlite:///{tmp_path}/mlflow.db", "--port", str(free_port()), code=None
    )
    one_line(done, "ui: MLflow did not start: ")
