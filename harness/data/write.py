"""Changing a query set of a data set: nothing else is touched, nothing is accepted in passing, all or nothing."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.core.errors import ConfigError, DataError
from harness.data.dataset import verify
from harness.data.manifest import Manifest, PinnedFile, write_manifest

_NAME = re.compile(r"\w[\w.-]*")


def checked_name(name: str) -> str:
    """A name that can be that of a file. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"'{name}': expected a name of letters, digits, dots and dashes")
    return name


def writable_set(manifest: Manifest, name: str) -> PinnedFile:
    """The file of a query set that may be written: one of the manifest, or a new one.

    Raises DataError for a locked set, for files of the data set that are not the pinned ones, and for a file that is
    there but not known to the manifest, or that is another set's.
    """
    checked_name(name)
    for pinned in (manifest.corpus, *manifest.queries.values(), *manifest.runs.values()):
        # Their hashes are renewed with the others'; a change behind the manifest's back must not be accepted so.
        verify(pinned)
    known = manifest.queries.get(name)
    if known is None:
        path = manifest.root / "queries" / f"{name}.jsonl"
        if path.exists():
            raise DataError(
                f"{path}: is there, and no query set of the manifest; name it there, or choose another name"
            )
        return PinnedFile(path, "")
    if known.locked:
        raise DataError(f"{known.path}: the query set '{name}' is locked; edit the file itself and `harness data pin`")
    if known.path.suffix == ".gz":
        raise DataError(f"{known.path}: is gzipped; unpack it, and name the plain file in the manifest")
    if any(pinned.path == known.path for other, pinned in manifest.queries.items() if other != name):
        raise DataError(f"{known.path}: is the file of several query sets; give each its own")
    return known


def write_set(
    manifest: Manifest, name: str, records: Sequence[Mapping[str, Any]], *, synthetic: bool = False
) -> Manifest:
    """Give a query set these records, and renew the hashes. Raises DataError; then all is as it was."""
    content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    return _put(manifest, name, writable_set(manifest, name), content, synthetic=synthetic)


def add_record(manifest: Manifest, name: str, record: Mapping[str, Any]) -> Manifest:
    """Add a query to a set of people's queries, which is made where there is none. Raises DataError."""
    pinned = writable_set(manifest, name)
    if pinned.synthetic:
        raise DataError(f"{pinned.path}: holds generated queries; add yours to a set of their own")
    before = pinned.path.read_bytes() if name in manifest.queries else b""
    parted = before if not before or before.endswith(b"\n") else before + b"\n"
    return _put(manifest, name, pinned, parted + (json.dumps(record, ensure_ascii=False) + "\n").encode())


def _put(manifest: Manifest, name: str, pinned: PinnedFile, content: bytes, *, synthetic: bool = False) -> Manifest:
    made = replace(manifest, queries={**manifest.queries, name: replace(pinned, synthetic=synthetic)})
    draft = pinned.path.with_name(f".{pinned.path.name}.draft")
    before = pinned.path.read_bytes() if pinned.path.is_file() else None
    try:
        pinned.path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(pinned.path)
        try:
            write_manifest(made)
        except BaseException:
            # A file that the manifest does not pin could not be used at all.
            if before is None:
                pinned.path.unlink()
            else:
                pinned.path.write_bytes(before)
            raise
    except OSError as error:
        raise DataError(f"{pinned.path}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)
    return made
