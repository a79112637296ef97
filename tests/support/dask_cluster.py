"""A Dask scheduler and workers as processes; workers may see nothing of this machine's project and caches."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from project import environment

_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5 s",
}
"""So that tests do not wait: a task may kill one worker, and a worker that is silent for so long is given up."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    port: int
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def on(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def start(
        self, *command: str, hidden: Sequence[Path] = (), bound: Mapping[Path, Path] | None = None, **changes: str
    ) -> "subprocess.Popen[bytes]":
        """Start a process of the cluster, with empty folders in place of the hidden ones, and others where bound."""
        arguments = [sys.executable, "-P", "-m", *command]
        mounts = "".join(f"mount --bind '{other}' '{folder}' && " for folder, other in (bound or {}).items())
        mounts += "".join(f"mount -t tmpfs tmpfs '{folder}' && " for folder in hidden)
        if mounts:
            arguments = ["unshare", "-m", "sh", "-c", f'{mounts}cd / && exec "$@"', "sh", *arguments]
        made = subprocess.Popen(
            arguments,
            env=environment(**_SETTINGS, **changes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(made)
        return made

    def worker(
        self, *options: str, hidden: Sequence[Path] = (), bound: Mapping[Path, Path] | None = None, **changes: str
    ) -> "subprocess.Popen[bytes]":
        """Start a worker with one thread, which a nanny restarts if it dies."""
        place = f"tcp://127.0.0.1:{self.port}"
        fixed = (
            "--nthreads",
            "1",
            "--no-dashboard",
            "--local-directory",
            tempfile.gettempdir(),
            "--death-timeout",
            "60",
        )
        return self.start("distributed.cli.dask_worker", place, *fixed, *options, hidden=hidden, bound=bound, **changes)


def can_hide() -> bool:
    """Whether this user may give a process folders of its own."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def scheduler() -> Iterator[Cluster]:
    """A scheduler without workers; all processes end with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = Cluster(port)
    try:
        cluster.start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield cluster
    finally:
        for process in cluster.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
