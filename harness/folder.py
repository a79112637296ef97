"""What a folder holds, as one digest."""

import hashlib
from functools import lru_cache
from pathlib import Path


def folder_digest(folder: Path) -> str:
    """sha256 over the names and contents of a folder's files; read again only where a size or a time has changed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stamps = tuple((str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return _hashed(folder.resolve(), stamps)


@lru_cache(maxsize=8)
def _hashed(folder: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, _ in stamps:
        with (folder / name).open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
