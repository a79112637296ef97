"""Files mapped into memory: read where they are needed, and taken out of the process's memory when they are not."""

import contextlib
import hashlib
import mmap
from collections import OrderedDict
from pathlib import Path

RESIDENT = 256 * 2**20
"""Bytes of mapped files, besides the one used last, that may stay in the memory of a process."""

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
    """Mapped files, of which those used longest ago leave the memory of the process."""

    def __init__(self) -> None:
        self._contents: OrderedDict[int, mmap.mmap] = OrderedDict()
        self._size = 0

    def use(self, content: mmap.mmap) -> None:
        """Note that a mapped file is used, and let go of others if they are too large; they can still be read."""
        if self._contents.pop(id(content), None) is None:
            self._size += len(content)
        self._contents[id(content)] = content
        while self._size - len(content) > RESIDENT:
            oldest = self._contents.popitem(last=False)[1]
            release(oldest)
            self._size -= len(oldest)


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
