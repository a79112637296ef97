"""Changing one query set of a data set: all or nothing, without accepting changes to other files."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.core.errors import ConfigError, DataError
from harness.data.manifest import Manifest, PinnedFile, require_plain, write_manifest
from harness.data.record_files import verify

_NAME = re.compile(r"\w[\w.-]*")


def checked_name(name: str) -> str:
    """The name itself, if it can be used as a file name. Raises ConfigError otherwise."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"'{name}': expected a name of letters, digits, dots and dashes")
    return name


def writable_set(manifest: Manifest, name: str) -> PinnedFile:
    """The file of a query set that may be written: one of the manifest, or a new one.

    Raises DataError if a file of the data set differs from the pinned one, if the set is locked, gzipped or shares its
    file with another set, or if the file of a new set already exists.
    """
    checked_name(name)
    for pinned in (manifest.corpus, *manifest.queries.values(), *manifest.runs.values()):
        # Writing the manifest updates all hashes, so an unpinned change to any file would be accepted unnoticed.
        verify(pinned)
    known = manifest.queries.get(name)
    if known is None:
        path = manifest.root / "queries" / f"{name}.jsonl"
        if path.exists():
            raise DataError(f"{path}: exists but is not in the manifest; add it there, or choose another name")
        return PinnedFile(path, "")
    if known.locked:
        raise DataError(f"{known.path}: query set '{name}' is locked; edit the file directly, then `harness data pin`")
    require_plain(known)
    if any(pinned.path == known.path for other, pinned in manifest.queries.items() if other != name):
        raise DataError(f"{known.path}: is shared by several query sets; give each its own file")
    return known


def write_set(
    manifest: Manifest, name: str, records: Sequence[Mapping[str, Any]], *, synthetic: bool = False
) -> Manifest:
    """Write a query set, update the hashes, and return the new manifest. If it raises DataError, nothing changed."""
    content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    return _put(manifest, name, writable_set(manifest, name), content, synthetic=synthetic)


def add_record(manifest: Manifest, name: str, record: Mapping[str, Any]) -> Manifest:
    """Add a query to a set, which is created if it does not exist, and return the new manifest.

    Raises DataError if the set is synthetic or cannot be written; nothing has changed then.
    """
    pinned = writable_set(manifest, name)
    if pinned.synthetic:
        raise DataError(f"{pinned.path}: contains generated queries; add yours to another set")
    before = pinned.path.read_bytes() if name in manifest.queries else b""
    lines = before if not before or before.endswith(b"\n") else before + b"\n"
    return _put(manifest, name, pinned, lines + (json.dumps(record, ensure_ascii=False) + "\n").encode())


def _put(manifest: Manifest, name: str, pinned: PinnedFile, content: bytes, *, synthetic: bool = False) -> Manifest:
    made = replace(manifest, queries={**manifest.queries, name: replace(pinned, synthetic=synthetic)})
    temporary = pinned.path.with_name(f".{pinned.path.name}.draft")
    before = pinned.path.read_bytes() if pinned.path.is_file() else None
    try:
        pinned.path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(pinned.path)
        try:
            write_manifest(made)
        except BaseException:
            # Restore the file: one that differs from the manifest could not be used.
            if before is None:
                pinned.path.unlink()
            else:
                pinned.path.write_bytes(before)
            raise
    except OSError as error:
        raise DataError(f"{pinned.path}: cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return made
