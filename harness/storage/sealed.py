"""Small JSON files with a format number and a checksum: damage is found when one is read."""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from harness.storage.digest import canonical
from harness.storage.files import explained, free_name


def write_sealed(path: Path, content: Any, version: int) -> None:
    """Write a file that appears when all of it is there."""
    record = {"format": version, "sha256": _seal(content, version), "content": content}
    with explained(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            _set_aside(path)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(canonical(record), encoding="utf-8")
        draft.replace(path)


def read_sealed(path: Path, version: int) -> Any:
    """What was written; None where nothing was, or where it is damaged or of another format: that is set aside."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and record and not record.keys() & {"format", "sha256", "content"}:
            return record  # of the time before there were seals
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
    with contextlib.suppress(OSError):  # another process was quicker, or the disk is read-only
        path.replace(free_name(path, "damaged"))
