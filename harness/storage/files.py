"""Folder digests, file names, folders that appear only when complete, and disk errors as one-line messages."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from harness.core.errors import DataError, StoreError


def folder_digest(folder: Path) -> str:
    """The sha256 of the names and contents of a folder's files; cached until a size or modification time changes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stamps = tuple((str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return _hashed(folder.resolve(), stamps)


def file_name(name: str) -> str:
    """A safe file or folder name for an arbitrary name: no path separators, and short enough for any file system.

    >>> file_name("chunk size/2"), file_name(".."), file_name("a" * 300)[:4]
    ('chunk-size-2', 'experiment', 'aaaa')
    """
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "experiment"
    if len(plain.encode()) <= 120:
        return plain
    return f"{plain[:30]}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def cache_folder() -> Path:
    """The folder for what can be fetched again: HARNESS_CACHE, by default `~/.cache/retrieval-harness`."""
    return Path(os.environ.get("HARNESS_CACHE") or Path.home() / ".cache" / "retrieval-harness")


def keep_file(folder: Path, name: str, content: bytes | memoryview) -> None:
    """Write a file into a folder, whole or not at all, and onto the disk. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / name)


def free_name(path: Path, word: str) -> Path:
    """An unused path next to `path` for setting it aside: its name with `.word-1`, or the next free number."""
    number = 1
    while (aside := path.with_name(f"{path.name}.{word}-{number}")).exists():
        number += 1
    return aside


@lru_cache(maxsize=8)
def _hashed(folder: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, _ in stamps:
        with (folder / name).open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Yield a hidden folder next to `target`, renamed to `target` if the block succeeds and removed if it fails.

    `target` must be new or an empty folder. Raises DataError if it is not, or if it cannot be written.
    """
    target = target.resolve()
    if target == Path.cwd():
        raise DataError(f"{target}: is the working directory; name a new folder inside it")
    if target.is_file():
        raise DataError(f"{target}: is a file; name a folder")
    if target.exists() and any(target.iterdir()):
        raise DataError(f"{target}: already contains files; name another folder or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise DataError(f"{target}: cannot be created: {error.strerror or error}") from None
    try:
        yield root
        root.chmod(0o755)
        if target.exists():
            target.rmdir()
        root.rename(target)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def explained(root: Path) -> Iterator[None]:
    """Turn an OSError in the block into a StoreError: one line that says what to do."""
    try:
        yield
    except OSError as error:
        remedy = {
            errno.ENOSPC: "the disk is full; free some space and start again, nothing finished is lost",
            errno.EDQUOT: "the disk quota is used up; free some space and start again, nothing finished is lost",
            errno.EROFS: "the file system is read-only; name another folder with --store",
            errno.EACCES: "permission denied; name another folder with --store",
            errno.EPERM: "permission denied; name another folder with --store",
            errno.ENOTDIR: "a part of the path is a file; name another folder with --store",
            errno.EEXIST: "it is a file, not a folder; name another folder with --store",
        }.get(error.errno or 0, f"it cannot be used ({error.strerror or error}); name another folder with --store")
        raise StoreError(f"store {root}: {remedy}") from error
