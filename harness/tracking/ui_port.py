"""The port of the MLflow UI of a database file: noted beside it, so that printed links lead to the UI that runs."""

import contextlib
import socket
from pathlib import Path

from harness.core.errors import HarnessError

HOST = "127.0.0.1"
FIRST = 5000
"""The port of MLflow's own UI, and of the links that are printed while none runs."""
_PORTS = range(FIRST, FIRST + 20)


def note_of(database: Path) -> Path:
    """Return the file that says on which port the UI of a database runs."""
    return database.with_name(f"{database.name}.port")


def running_port(database: Path) -> int | None:
    """Return the port on which the UI of a database answers; None if none does."""
    with contextlib.suppress(OSError, ValueError, OverflowError):
        port = int(note_of(database).read_text(encoding="utf-8"))
        with socket.create_connection((HOST, port), timeout=0.5):
            return port
    return None


def free_port(wanted: int | None = None) -> int:
    """Return the wanted port, or the first free one from FIRST on. Raises HarnessError if there is none."""
    for port in _PORTS if wanted is None else (wanted,):
        with contextlib.suppress(OSError, OverflowError), socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((HOST, port))
            return port
    if wanted is None:
        raise HarnessError(f"ui: ports {_PORTS[0]} to {_PORTS[-1]} are in use; name another one with --port")
    raise HarnessError(f"ui: port {wanted} is in use or not allowed; without --port, a free one is found")
