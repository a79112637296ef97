"""Small JSON files with a format number and a checksum, so that reading one detects damage."""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from harness.storage.digest import canonical
from harness.storage.files import explained, free_name


def write_sealed(path: Path, content: Any, version: int) -> None:
    """Write a JSON file atomically, with format `version` and checksum. Raises StoreError if it cannot be written."""
    record = {"format": version, "sha256": _seal(content, version), "content": content}
    with explained(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            _set_aside(path)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(canonical(record), encoding="utf-8")
        temporary.replace(path)


def read_sealed(path: Path, version: int) -> Any:
    """The content of a sealed file; None if there is no file, or if it is damaged or of another format.

    Such a file is set aside: renamed to `<name>.damaged-1`, or the next free number.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and record and not record.keys() & {"format", "sha256", "content"}:
            return record  # written by a version without checksums
        if record["format"] == version and record["sha256"] == _seal(record["content"], version):
            return record["content"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    _set_aside(path)
    return None


def _seal(content: Any, version: int) -> str:
    return hashlib.sha256(canonical([version, content]).encode("utf-8", "surrogatepass")).hexdigest()


def _set_aside(path: Path) -> None:
    with contextlib.suppress(OSError):  # another process set it aside first, or the disk is read-only
        path.replace(free_name(path, "damaged"))
