"""Locks between processes on one store, which the system releases when their holder dies."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

_POLL = 0.01
"""Seconds between two attempts to get a lock that another process holds."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the system releases it when the process dies, however it dies.

    Waits until the lock is free. Raises OSError if the file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, poll_interval=_POLL):
        yield


class LivenessLock:
    """A file that its owner keeps locked while it lives, so that other processes can see whether it does."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Closed by whichever thread ends the work.
        self._lock = FileLock(path, thread_local=False)
        self._path = path
        self._lock.acquire()

    def close(self) -> None:
        """Give the lock back and remove its file."""
        self._path.unlink(missing_ok=True)
        self._lock.release()


def is_alive(path: Path) -> bool:
    """Whether the owner of a `LivenessLock` lives; the file of one that does not is removed."""
    if not path.is_file():
        return False
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except OSError:
        return False
    with contextlib.suppress(OSError):
        path.unlink()
    lock.release()
    return False
