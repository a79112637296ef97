"""Files mapped into memory: read where they are needed, and taken out of the process's memory when they are not."""

import contextlib
import hashlib
import mmap
import threading
import weakref
from collections import OrderedDict
from pathlib import Path

from harness.core.memory import resident_memory, return_freed

RESIDENT = 256 * 2**20
"""Bytes of mapped files, besides the one used last, that may stay in the memory of a process."""

LARGE_PROCESS = 2**30
"""Bytes in memory above which a process gives back what it does not use."""

_BLOCK = 2**24


def mapped(path: Path) -> mmap.mmap:
    """Return the content of a file that is not empty, mapped for reading. Raises OSError."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def release(content: mmap.mmap) -> None:
    """Let go of the memory that a mapped file takes; what is read again comes from the system's cache or the disk."""
    with contextlib.suppress(OSError, AttributeError):  # not every system can
        content.madvise(mmap.MADV_DONTNEED)


class Mapped:
    """The mapped files of a process, of which those used longest ago leave its memory."""

    def __init__(self) -> None:
        self._known: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._used: OrderedDict[int, mmap.mmap] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def use(self, content: mmap.mmap) -> None:
        """Note that a mapped file is used, and let go of others if they are too large; they can still be read."""
        with self._lock:
            self._known.add(content)
            if self._used.pop(id(content), None) is None:
                self._size += len(content)
            self._used[id(content)] = content
            while self._size - len(content) > RESIDENT:
                oldest = self._used.popitem(last=False)[1]
                release(oldest)
                self._size -= len(oldest)

    def release(self) -> None:
        """Let go of all, also of what was read again without a note."""
        with self._lock:
            for content in self._known:
                release(content)
            self._used.clear()
            self._size = 0


MAPPED = Mapped()
"""Those of this process."""


def give_back() -> None:
    """Return memory that a large process does not use to the system: that of mapped files, and what it has freed.

    A stage may have needed much that the next one does not; what is read again comes from the system's cache.
    """
    if resident_memory() > LARGE_PROCESS:
        MAPPED.release()
        return_freed()


def content_sha256(content: bytes | mmap.mmap) -> str:
    """Return the SHA-256 of a content; a mapped one takes no memory afterwards."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    with memoryview(content) as view:
        for begin in range(0, len(view), _BLOCK):
            digest.update(view[begin : begin + _BLOCK])
            release(content)
    return digest.hexdigest()
