"""What a store contains, which launches use it, what can go, and what is damaged."""

import contextlib
import datetime
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import HarnessError
from harness.core.plurals import plural
from harness.running.launch_history import records_of
from harness.running.parcel import FOLDER as PARCELS
from harness.running.planning.sample_timing import SAMPLES
from harness.running.stages.database_index import RECORDS, drop_noted, noted_bytes
from harness.storage.array_file import Content
from harness.storage.bucket import bucket_of
from harness.storage.files import explained
from harness.storage.mapped import content_sha256
from harness.storage.store import content_of
from harness.storage.vector_file import SUFFIX, is_sound

_KINDS = ("objects", "vectors", PARCELS, "damaged", "drafts", SAMPLES, RECORDS)
"""The folders whose content can be made again. Answers, launches and accesses to locked sets are never removed."""

DAY = datetime.timedelta(days=1)


class Item(NamedTuple):
    """Something stored: its name in the store, its size in bytes, when it was written, and where it is.

    An artifact is one item, `objects/ab/<address>`, though a folder has two files of it.
    """

    name: str
    size: int
    modified: datetime.datetime
    here: bool
    """Whether it is on this machine."""
    there: bool
    """Whether it is in the bucket."""


class Use(NamedTuple):
    """The newest launch of an experiment: its id, and the stage of each item that it uses, by name.

    The name of an embedder's folder, `vectors/<namespace>`, stands for all files in it.
    """

    experiment: str
    launch: str
    stages: Mapping[str, str]

    def stage(self, name: str) -> str | None:
        """Return the stage that an item of this name belongs to; None if the launch does not use it."""
        return self.stages.get(name) or self.stages.get(name.rpartition("/")[0])


@dataclass(frozen=True)
class Inventory:
    """All that a store contains, and what the newest launches of its experiments use."""

    store: Path
    items: Mapping[str, Item]
    uses: Sequence[Use]
    unknown: Sequence[str] = ()
    """Experiments whose newest launch did not record what it used."""

    def kind(self, name: str) -> str:
        """Return the stage of an artifact, `not used` if no launch uses it, or the folder that anything else is in."""
        folder = name.partition("/")[0]
        return folder if folder != "objects" else self._stage(name) or "not used"

    def unused(self, age: datetime.timedelta, now: datetime.datetime) -> list[Item]:
        """Return what no newest launch of any experiment uses and is older than `age`, the largest first."""
        old = (item for item in self.items.values() if now - item.modified >= age)
        return sorted((item for item in old if not self._stage(item.name)), key=lambda item: (-item.size, item.name))

    def _stage(self, name: str) -> str | None:
        return next((stage for use in self.uses if (stage := use.stage(name))), None)


def inventory(store: Path) -> Inventory:
    """Return what a store contains. Raises StoreError if it cannot be read."""
    items: dict[str, Item] = {}
    with explained(store):
        for kind in _KINDS:
            for item in _here(store, kind):
                items[item.name] = item
    bucket = bucket_of(store)
    for entry in list(bucket.entries()) if bucket is not None else ():
        if entry.name.partition("/")[0] in _KINDS:
            known = items.get(entry.name)
            items[entry.name] = Item(entry.name, entry.size, entry.modified, known is not None, True)
    newest = {(record["experiment"], record["final"]): record for record in records_of(store)}
    uses = [
        Use(name, record["id"], {item: stage for stage, names in record["uses"].items() for item in names})
        for (name, _), record in newest.items()
        if "uses" in record
    ]
    unknown = {name: None for (name, _), record in newest.items() if "uses" not in record}
    return Inventory(store, items, uses, list(unknown))


def remove(store: Path, items: Iterable[Item]) -> None:
    """Remove items from the folder of a store and from its bucket, and indexes from their databases.

    Raises StoreError, and HarnessError if a database cannot be used; everything else is then removed.
    """
    there = []
    failed: list[HarnessError] = []
    with explained(store):
        for item in items:
            path = store / item.name
            if item.name.startswith(f"{RECORDS}/"):
                try:
                    drop_noted(store, path)
                except HarnessError as error:
                    failed.append(error)
                    continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            there += [item.name] if item.there else []
    bucket = bucket_of(store)
    if bucket is not None:
        bucket.remove(there)
    if failed:
        others = f", but for {plural(len(failed) - 1, 'other index')}" if len(failed) > 1 else ""
        raise HarnessError(f"{failed[0]}; all else is removed{others}")


def damaged(found: Inventory) -> Iterator[str]:
    """Yield the path or the URL of everything whose content does not match its checksum."""
    bucket = bucket_of(found.store)
    for item in found.items.values():
        if item.name.startswith(("damaged/", "drafts/", f"{SAMPLES}/")):
            continue
        if item.here and not _is_sound_here(found.store, item.name):
            yield str(found.store / item.name)
        if item.there and bucket is not None:
            content = bucket.get(item.name)
            if content is not None and not _is_sound(item.name, content):
                yield f"{bucket.url}/{item.name}"


def _here(store: Path, kind: str) -> Iterator[Item]:
    sizes: Counter[str] = Counter()
    times: dict[str, float] = {}
    for path in (store / kind).rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a launch may be working
            status = path.stat()
            if path.is_file():
                parts = path.relative_to(store).parts
                # The folder of an artifact, or a set-aside one, is one item; so is every other file.
                name = "/".join(parts[:3] if kind in ("objects", "damaged") else parts)
                sizes[name] += status.st_size if kind != RECORDS else noted_bytes(path)
                times[name] = max(times.get(name, 0.0), status.st_mtime)
    for name, size in sizes.items():
        yield Item(name, size, datetime.datetime.fromtimestamp(times[name], datetime.UTC), True, False)


def _is_sound_here(store: Path, name: str) -> bool:
    path = store / name
    try:
        if path.is_dir():
            return _is_sound_artifact((path / "key.json").read_bytes(), content_of(path / "arrays.npz"))
        return _is_sound(name, path.read_bytes())
    except OSError:
        return False


def _is_sound(name: str, content: bytes) -> bool:
    """Whether the content of a file or an object is what its name, or for an artifact its first line, says."""
    if name.startswith("objects/"):
        record, _, arrays = content.partition(b"\n")
        return _is_sound_artifact(record, arrays)
    last, sha256 = name.rpartition("/")[2], hashlib.sha256(content).hexdigest()
    if last.endswith(SUFFIX):
        return is_sound(last, content)
    # Of copies of data and code, the name says nothing.
    return len(last) != len(sha256) or last == sha256


def _is_sound_artifact(record: bytes, arrays: Content) -> bool:
    try:
        return bool(json.loads(record)["sha256"] == content_sha256(arrays))
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
