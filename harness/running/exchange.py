"""What machines with one bucket exchange besides artifacts and vectors: records of launches, and answers of models."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import StoreError
from harness.llm import AnswerCache
from harness.storage.bucket import Bucket, bucket_of
from harness.storage.files import explained
from harness.storage.model_outputs import ScoreCache
from harness.storage.sealed import read_sealed, write_sealed
from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_merge import merge, row_count, snapshot

_RECORDS = ("launches", "calibrations")
"""Folders of JSON records. Of two with one name, the newer counts."""

_CACHES: dict[str, type[SqliteFile]] = {"answers.sqlite": AnswerCache, "scores.sqlite": ScoreCache}
"""Files of answers, which have cost money or time. In the bucket, each machine's file is an object `<name>/<sha256>`;
what is known is the union of all."""

FORMAT = 1
"""Version of the format of the note of what was exchanged."""


def fetch(store: Path) -> None:
    """Bring the folder of a store up to date with its bucket, if it has one. Raises StoreError."""
    bucket = bucket_of(store)
    if bucket is None:
        return
    bucket.require()
    for folder in _RECORDS:
        for entry in list(bucket.entries(f"{folder}/")):
            path = store / entry.name
            if not path.is_file() or path.stat().st_mtime < entry.modified.timestamp():
                content = bucket.get(entry.name)
                if content is not None:
                    with explained(store):
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(content)
    for name in _CACHES:
        _fetch_answers(store, name, bucket)


def send(store: Path) -> None:
    """Bring the bucket of a store, if it has one, up to date with the folder. Raises StoreError."""
    bucket = bucket_of(store)
    if bucket is None:
        return
    for folder in _RECORDS:
        known = {entry.name: entry.modified.timestamp() for entry in bucket.entries(f"{folder}/")}
        for path in sorted((store / folder).glob("*.json")):
            name = f"{folder}/{path.name}"
            if name not in known or known[name] < path.stat().st_mtime:
                bucket.replace(name, path.read_bytes())
    for name in _CACHES:
        _send_answers(store, name, bucket)


@contextlib.contextmanager
def sending(store: Path) -> Iterator[None]:
    """Bring the bucket up to date after the block, also if it fails: answers that came until then were paid for."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(StoreError):
            send(store)
        raise
    send(store)


class _Note(NamedTuple):
    """Which objects are in a file, and how many rows it had when all of them were in the bucket."""

    objects: list[str]
    rows: int


def _fetch_answers(store: Path, name: str, bucket: Bucket) -> None:
    note = _noted(store, name)
    new = [entry.name for entry in bucket.entries(f"{name}/") if entry.name not in note.objects]
    if not new:
        return
    with closing(_CACHES[name](store / name)) as cache, tempfile.TemporaryDirectory() as folder:
        sent = row_count(cache) == note.rows
        for found in new:
            content = bucket.get(found)
            if content is not None and hashlib.sha256(content).hexdigest() == found.rpartition("/")[2]:
                other = Path(folder, name)
                other.write_bytes(content)
                merge(cache, other)
        _note(store, name, _Note([*note.objects, *new], row_count(cache) if sent else note.rows))


def _send_answers(store: Path, name: str, bucket: Bucket) -> None:
    if not (store / name).is_file():
        return
    note = _noted(store, name)
    with closing(_CACHES[name](store / name)) as cache:
        rows = row_count(cache)
        if rows == note.rows:
            return
        content = snapshot(cache)
    made = f"{name}/{hashlib.sha256(content).hexdigest()}"
    bucket.create(made, content)
    # Their rows are in the new object; a machine that has not fetched them fetches that one.
    bucket.remove([one for one in note.objects if one != made])
    _note(store, name, _Note([made], rows))


def _noted(store: Path, name: str) -> _Note:
    found = read_sealed(store / "exchanged" / f"{name}.json", FORMAT) or {"objects": [], "rows": 0}
    return _Note(found["objects"], found["rows"])


def _note(store: Path, name: str, note: _Note) -> None:
    write_sealed(store / "exchanged" / f"{name}.json", note._asdict(), FORMAT)
