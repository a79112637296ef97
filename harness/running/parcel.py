"""What a launch sends to workers on other machines, through the store: data and the researcher's own code, by content.

A worker uses its own copy of a file where it has one with the same content, and checks before any work that it would
compute the same numbers: with the same versions, in the same store.
"""

import contextlib
import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from harness.components.component import Component
from harness.core.environment import deciding_versions
from harness.core.errors import HarnessError
from harness.data.manifest import MANIFEST, Manifest, sha256_of
from harness.experiment.catalog import import_source
from harness.experiment.trial import Trial
from harness.running.stages.workspace import StageContext
from harness.storage.bucket import bucket_of, local_folder
from harness.storage.digest import canonical
from harness.storage.files import explained, keep_file

FOLDER = "parcels"


class Parcel(NamedTuple):
    """What a worker needs: versions by package, and hashes by path of the data's files and of own source files.

    `references` are the modules of own code in installed packages, which every machine must have.
    """

    versions: Mapping[str, str]
    root: str
    data: Mapping[str, str]
    code: Mapping[str, str]
    references: tuple[str, ...]


class Opened(NamedTuple):
    """A context whose data are on this machine, and where own source files are, by their original path."""

    context: StageContext
    code: Mapping[str, str]


def pack(store: Path, manifest: Manifest, trials: Iterable[Trial]) -> str:
    """Put all that workers need into the store; return the address of the parcel. Raises StoreError."""
    data = {}
    trials = list(trials)
    for path in _files_of(manifest, {trial.queries for trial in trials}):
        data[path.relative_to(manifest.root).as_posix()] = _send(store, path)
    places = dict.fromkeys(place for trial in trials for place in _own_places(trial))
    code = {place: _send(store, Path(place)) for place in places if place.endswith(".py")}
    references = tuple(place for place in places if place not in code)
    content = canonical(Parcel(_versions(), str(manifest.root), data, code, references)._asdict()).encode()
    return _put(store, content)


def opened(context: StageContext) -> Opened:
    """Make a context usable on this machine; nothing is left to do if it has no parcel.

    Raises HarnessError, in one line, if this machine would compute something else than the launching one.
    """
    return _opened(context.store, context.parcel, context) if context.parcel else Opened(context, {})


def fault(context: StageContext) -> str:
    """Why this machine cannot take part, in one line; empty if it can. Every worker is asked before any work."""
    try:
        opened(context)
    except HarnessError as error:
        return str(error)
    return ""


@lru_cache(maxsize=64)
def _opened(place: str, address: str, context: StageContext) -> Opened:
    store = local_folder(place)
    parcel = _read(store, place, address)
    _require_versions(parcel)
    root = _root(store, address, parcel)
    code = {path: str(_source(store, path, sha256)) for path, sha256 in parcel.code.items()}
    for place in (*code.values(), *parcel.references):
        import_source(place, f"own code {Path(place).name}")
    return Opened(context._replace(root=str(root), parcel=""), code)


def _read(store: Path, place: str, address: str) -> Parcel:
    content = _get(store, address)
    if content is None:
        raise HarnessError(f"store {place}: is not the store of the launching process; share a disk, or use s3://…")
    found = json.loads(content)
    return Parcel(**{**found, "references": tuple(found["references"])})


def _versions() -> dict[str, str]:
    """What must be the same everywhere. A patch release of Python changes no number."""
    return {"Python": platform.python_version().rpartition(".")[0], **deciding_versions()}


def _require_versions(parcel: Parcel) -> None:
    here = _versions()
    for name, wanted in parcel.versions.items():
        found = here.get(name, "missing")
        if found != wanted:
            raise HarnessError(f"{name} is {found}, but {wanted} in the launching process; install the same version")


def _root(store: Path, address: str, parcel: Parcel) -> Path:
    """The folder of the data: the original one if this machine has it, else a copy made of the store's files."""
    original = Path(parcel.root)
    if (original / MANIFEST).is_file():
        for name, sha256 in parcel.data.items():
            path = original / name
            if not path.is_file() or sha256_of(path) != sha256:
                raise HarnessError(
                    f"data {path}: is not the file of the launching process; copy that one, or remove it"
                )
        return original
    copy = store / FOLDER / f"{address}.data"
    if not copy.is_dir():
        with explained(store):
            (store / FOLDER).mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(dir=store / FOLDER))
            for name, sha256 in parcel.data.items():
                target = draft / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(_needed(store, sha256, name))
            with contextlib.suppress(FileExistsError):
                draft.rename(copy)
            shutil.rmtree(draft, ignore_errors=True)
    return copy


def _source(store: Path, path: str, sha256: str) -> Path:
    """A source file on this machine: the original one if it has the same content, else a copy."""
    original = Path(path)
    if original.is_file() and sha256_of(original) == sha256:
        return original
    copy = store / FOLDER / "sources" / sha256 / original.name
    if not copy.is_file():
        with explained(store):
            keep_file(copy.parent, copy.name, _needed(store, sha256, original.name))
    return copy


def _needed(store: Path, sha256: str, name: str) -> bytes:
    content = _get(store, sha256)
    if content is None:
        raise HarnessError(f"store {store}: the file {name} that the launching process sent is missing")
    return content


def _files_of(manifest: Manifest, sets: Iterable[str]) -> Iterator[Path]:
    """The files that the trials read; a locked set is among them only if they do.

    The corpus is not: workers read the documents that they need from the store. A file at a URL is fetched from there.
    """
    yield manifest.root / MANIFEST
    pinned = (*(manifest.queries[name] for name in sorted(sets)), *manifest.runs.values())
    yield from (file.path for file in pinned if file.path.is_file() and not file.url)


def _own_places(value: Any) -> Iterator[str]:
    """Where the own classes in a trial are defined: the path of a `.py` file, or a module."""
    if isinstance(value, Component):
        own = vars(type(value)).get("source")
        if own:
            yield own[0].rpartition(":")[0]
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _own_places(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _own_places(one)


def _send(store: Path, path: Path) -> str:
    return _put(store, path.read_bytes())


def _put(store: Path, content: bytes) -> str:
    """Keep a content in the store under its SHA-256."""
    sha256, bucket = hashlib.sha256(content).hexdigest(), bucket_of(store)
    if not (store / FOLDER / sha256).is_file():
        with explained(store):
            keep_file(store / FOLDER, sha256, content)
        if bucket is not None:
            bucket.create(f"{FOLDER}/{sha256}", content)
    return sha256


def _get(store: Path, sha256: str) -> bytes | None:
    """A content of the store; None if it is not there, or damaged."""
    path, bucket = store / FOLDER / sha256, bucket_of(store)
    content = path.read_bytes() if path.is_file() else bucket.get(f"{FOLDER}/{sha256}") if bucket else None
    return content if content is not None and hashlib.sha256(content).hexdigest() == sha256 else None
