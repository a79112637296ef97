"""Files mapped into memory: read where they are needed, and taken out of the process's memory when they are not."""

import contextlib
import hashlib
import mmap
from collections import deque
from pathlib import Path

RESIDENT = 256 * 2**20
"""Bytes of mapped files, besides the one mapped last, that may stay in the memory of a process."""

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
    """The mapped files of a process, of which those mapped longest ago leave its memory."""

    def __init__(self) -> None:
        self._contents: deque[mmap.mmap] = deque()
        self._size = 0

    def add(self, content: mmap.mmap) -> None:
        """Note a mapped file, and let go of others if they are too large; they can still be read."""
        while self._size > RESIDENT:
            release(self._contents[0])
            self._size -= len(self._contents.popleft())
        self._contents.append(content)
        self._size += len(content)


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
