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
from typing import Any, NamedTuple

from harness.running.launch_history import records_of
from harness.running.parcel import FOLDER as PARCELS
from harness.storage.bucket import bucket_of
from harness.storage.files import explained
from harness.storage.vector_file import SUFFIX, is_sound

_KINDS = ("objects", "vectors", PARCELS, "damaged", "drafts")
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
    """The newest launch of an experiment: its id, and the names of what it uses, by stage."""

    experiment: str
    launch: str
    names: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Inventory:
    """All that a store contains, and what the newest launches of its experiments use."""

    store: Path
    items: Mapping[str, Item]
    uses: Sequence[Use]
    unknown: Sequence[str] = ()
    """Experiments whose newest launch did not record what it used."""

    @property
    def stages(self) -> dict[str, str]:
        """The stage of each item that a launch uses, by the item's name."""
        return {name: stage for use in self.uses for stage, names in use.names.items() for name in names}

    def kind(self, name: str) -> str:
        """The stage of an item, or what it is if no launch uses it."""
        top = name.partition("/")[0]
        return self.stages.get(name, {"objects": "not used"}.get(top, top)) if top != "vectors" else "vectors"

    def unused(self, age: datetime.timedelta, now: datetime.datetime) -> list[Item]:
        """Return what no newest launch of any experiment uses and is older than `age`, the largest first."""
        used = {name for use in self.uses for names in use.names.values() for name in names}
        spaces = {name for name in used if name.startswith("vectors/")}
        found = (
            item
            for item in self.items.values()
            if item.name not in used and item.name.rpartition("/")[0] not in spaces and now - item.modified >= age
        )
        return sorted(found, key=lambda item: (-item.size, item.name))


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
    uses = [Use(name, record["id"], record["uses"]) for (name, _), record in newest.items() if "uses" in record]
    unknown = {name: None for (name, _), record in newest.items() if "uses" not in record}
    return Inventory(store, items, uses, list(unknown))


def remove(store: Path, items: Iterable[Item]) -> None:
    """Remove items from the folder of a store and from its bucket. Raises StoreError."""
    there = []
    with explained(store):
        for item in items:
            path = store / item.name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            there += [item.name] if item.there else []
    bucket = bucket_of(store)
    if bucket is not None:
        bucket.remove(there)


def damaged(found: Inventory) -> Iterator[tuple[Item, str]]:
    """Yield the items whose content does not match its checksum, with the place of the bad copy: its path or URL."""
    bucket = bucket_of(found.store)
    for item in found.items.values():
        if item.name.startswith(("damaged/", "drafts/")):
            continue
        if item.here and not _is_sound_here(found.store / item.name):
            yield item, str(found.store / item.name)
        if item.there and bucket is not None:
            content = bucket.get(item.name)
            if content is not None and not _is_sound(item.name, content):
                yield item, f"{bucket.url}/{item.name}"


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
                sizes[name] += status.st_size
                times[name] = max(times.get(name, 0.0), status.st_mtime)
    for name, size in sizes.items():
        yield Item(name, size, datetime.datetime.fromtimestamp(times[name], datetime.UTC), True, False)


def _is_sound_here(path: Path) -> bool:
    try:
        if path.is_dir():
            record = json.loads((path / "key.json").read_bytes())
            return bool(record["sha256"] == hashlib.sha256((path / "arrays.npz").read_bytes()).hexdigest())
        return _is_sound(path.as_posix(), path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _is_sound(name: str, content: bytes) -> bool:
    last = name.rpartition("/")[2]
    if last.endswith(SUFFIX):
        return is_sound(last, content)
    sha256 = hashlib.sha256(content).hexdigest()
    if len(last) == len(sha256) and "/objects/" not in f"/{name}":
        return last == sha256
    record, _, arrays = content.partition(b"\n")
    if "/objects/" not in f"/{name}":
        return True  # a copy of data or code, whose name says nothing
    try:
        known: Any = json.loads(record)
        return bool(known["sha256"] == hashlib.sha256(arrays).hexdigest())
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
