"""A Chroma server (`chroma run`) in a process of its own, on 127.0.0.1, that can be killed and started again."""

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path


class ChromaServer:
    """A server on the same port and folder each time that it is started."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._folder = folder
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = str(Path(sys.executable).with_name("chroma"))
        where = ["--path", str(self._folder), "--host", "127.0.0.1", "--port", str(self._port)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([program, "run", *where], **quiet)  # type: ignore[call-overload]
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=1):
                return
            assert self._process.poll() is None, "the server ended"
            time.sleep(0.01)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """Kill it as the system does when memory is out."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def chroma_server(folder: Path) -> Iterator[ChromaServer]:
    """A running server."""
    server = ChromaServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
