"""What machines with one bucket exchange besides artifacts and vectors: records of launches, and answers of models."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import StoreError
from harness.llm import AnswerCache
from harness.storage.bucket import Bucket, bucket_of
from harness.storage.files import explained, keep_file
from harness.storage.model_outputs import ScoreCache
from harness.storage.sealed import read_sealed, write_sealed
from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_merge import fingerprint, merge, snapshot
from harness.storage.system_answers import SystemAnswers

_WRITTEN_ONCE, _REPLACED = "launches", "calibrations"
"""Folders of JSON records: those that never change, and those of which the newer one of a name counts."""

_CACHES: dict[str, type[SqliteFile]] = {
    "answers.sqlite": AnswerCache,
    "scores.sqlite": ScoreCache,
    "systems.sqlite": SystemAnswers,
}
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
    for folder in (_WRITTEN_ONCE, _REPLACED):
        for entry in list(bucket.entries(f"{folder}/")):
            path, written = store / entry.name, entry.modified.timestamp()
            if not path.is_file() or (folder == _REPLACED and path.stat().st_mtime < written):
                content = bucket.get(entry.name)
                if content is not None:
                    with explained(store):
                        keep_file(path.parent, path.name, content)
                        os.utime(path, (written, written))
    for name in _CACHES:
        _fetch_answers(store, name, bucket)


def send(store: Path) -> None:
    """Bring the bucket of a store, if it has one, up to date with the folder. Raises StoreError."""
    bucket = bucket_of(store)
    if bucket is None:
        return
    for folder in (_WRITTEN_ONCE, _REPLACED):
        known = {entry.name: entry.modified.timestamp() for entry in bucket.entries(f"{folder}/")}
        for path in sorted((store / folder).glob("*.json")):
            name = f"{folder}/{path.name}"
            if name not in known or (folder == _REPLACED and known[name] < path.stat().st_mtime):
                bucket.replace(name, path.read_bytes())
                written = bucket.entry(name)
                if written:  # else this machine would fetch its own record
                    os.utime(path, (written.modified.timestamp(),) * 2)
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
    """Which objects are in a file, and its fingerprint when all its rows were in the bucket."""

    objects: list[str]
    sent: list[int]


def _fetch_answers(store: Path, name: str, bucket: Bucket) -> None:
    note = _noted(store, name)
    new = [entry.name for entry in bucket.entries(f"{name}/") if entry.name not in note.objects]
    if new:
        with closing(_CACHES[name](store / name)) as cache:
            nothing_to_send = _is_sent(cache, note)
            _merge_objects(cache, bucket, new)
            _note(store, name, _Note([*note.objects, *new], fingerprint(cache) if nothing_to_send else note.sent))


def _send_answers(store: Path, name: str, bucket: Bucket) -> None:
    if not (store / name).is_file():
        return
    with closing(_CACHES[name](store / name)) as cache:
        if _is_sent(cache, _noted(store, name)):
            return
        # All of them, also those that were merged before: rows that were damaged here since must not be lost there.
        others = [entry.name for entry in bucket.entries(f"{name}/")]
        _merge_objects(cache, bucket, others)
        now, content = fingerprint(cache), snapshot(cache)
    made = f"{name}/{hashlib.sha256(content).hexdigest()}"
    bucket.create(made, content)
    bucket.remove([other for other in others if other != made])
    _note(store, name, _Note([made], now))


def _is_sent(cache: SqliteFile, note: _Note) -> bool:
    """Whether the bucket has all rows of a file."""
    now = fingerprint(cache)
    return now == note.sent or not any(now)


def _merge_objects(cache: SqliteFile, bucket: Bucket, names: Sequence[str]) -> None:
    """Add the rows of objects to a file; a damaged object adds none."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            content = bucket.get(name)
            if content is not None and hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]:
                other = Path(folder, cache.path.name)
                other.write_bytes(content)
                merge(cache, other)


def _noted(store: Path, name: str) -> _Note:
    found = read_sealed(store / "exchanged" / f"{name}.json", FORMAT) or {"objects": [], "sent": []}
    return _Note(found["objects"], found["sent"])


def _note(store: Path, name: str, note: _Note) -> None:
    write_sealed(store / "exchanged" / f"{name}.json", note._asdict(), FORMAT)
