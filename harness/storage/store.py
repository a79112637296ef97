"""The content-addressed store: a stage's output is stored under the digest of everything that determines it."""

import contextlib
import errno
import io
import json
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.storage.array_file import Content, read_arrays, write_arrays
from harness.storage.bucket import bucket_of
from harness.storage.digest import canonical, digest
from harness.storage.files import explained
from harness.storage.locks import locked
from harness.storage.mapped import MAPPED, content_sha256, give_back, mapped

Key = Mapping[str, Any]
"""JSON-serializable settings and upstream digests; equal keys mean equal output."""

FORMAT = 1
"""Format number of the `key.json` of an artifact."""

_ARRAYS, _KEY, _DATA = "arrays.npz", "key.json", "__data__"

LARGE = 32 * 2**20
"""Bytes from which the arrays of an artifact are written one by one and read by memory mapping."""


@dataclass(frozen=True)
class Artifact:
    """The output of a stage: numpy arrays and one JSON value. Never contains a pickle."""

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    data: Any = None

    @property
    def nbytes(self) -> int:
        """The size of the arrays, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())


class Store:
    """Artifacts in a folder: `objects/ab/<digest>/` contains `arrays.npz` and the `key.json` that was hashed.

    In a bucket, the object `objects/ab/<digest>` contains both, the key in its first line, and appears by a conditional
    put: of two machines that built the same artifact, both use what the first one wrote.

    An artifact appears by an atomic rename, so a killed writer leaves no partial artifact. Its checksum is verified
    when it is read from disk; a damaged artifact is set aside and built again. The arrays of a large one are views of
    its mapped file, so that a process holds in memory only what it uses of them. A lock per address keeps two launches
    from building the same artifact twice. `built` counts what this object had to build, by stage, which shows that a
    second run is free; `written` is the size of that in bytes.
    """

    MEMORY = 128 * 2**20
    """Maximum bytes of artifacts kept in memory; the least recently used are evicted first. Large ones do not count."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._bucket = bucket_of(root)
        self._stored_remotely: set[str] | None = None
        self.built: dict[str, int] = {}
        self.written: dict[str, int] = {}
        self.damaged: list[str] = []
        self._memory: OrderedDict[str, Artifact] = OrderedDict()
        self._held = 0

    def path(self, address: str) -> Path:
        """The folder of the artifact with this address (the digest of its key)."""
        return self.root / "objects" / address[:2] / address

    def has(self, key: Key) -> bool:
        """Whether an artifact is stored under this key; its checksum is verified only when it is read."""
        address = digest(key)
        return (self.path(address) / _KEY).is_file() or (self._bucket is not None and self._in_bucket(address))

    def _in_bucket(self, address: str) -> bool:
        assert self._bucket is not None
        if self._stored_remotely is None:  # one listing instead of a request per artifact
            self._stored_remotely = {entry.name for entry in self._bucket.entries("objects/")}
        name = object_name(address)
        if name not in self._stored_remotely and self._bucket.has(name):
            self._stored_remotely.add(name)
        return name in self._stored_remotely

    def get(self, key: Key, build: Callable[[], Artifact]) -> Artifact:
        """The artifact of `key`: read if it is stored, else built and stored. Raises StoreError for disk errors."""
        address = digest(key)
        if address in self._memory:
            self._memory.move_to_end(address)
            return self._memory[address]
        with explained(self.root):
            artifact = self._read(address, key)
        if artifact is None:
            artifact = self._fetched(address, key)
        if artifact is None:
            artifact = self._build(address, key, build)
        self._remember(address, artifact)
        return artifact

    def _remember(self, address: str, artifact: Artifact) -> None:
        self._memory[address] = artifact
        self._held += _held_bytes(artifact)
        while self._held > self.MEMORY and len(self._memory) > 1:
            self._held -= _held_bytes(self._memory.popitem(last=False)[1])

    def _build(self, address: str, key: Key, build: Callable[[], Artifact]) -> Artifact:
        with contextlib.ExitStack() as stack:
            with explained(self.root):
                stack.enter_context(locked(self.root / "locks" / address))
                # Another launch may have built it while this one waited for the lock.
                artifact = self._read(address, key)
            if artifact is None:
                artifact = self._published(address, key, build())
                give_back()
                stage = str(key.get("stage", ""))
                self.built[stage] = self.built.get(stage, 0) + 1
            # Waiting processes have their own handle on this file and then find the artifact; later ones read it first.
            (self.root / "locks" / address).unlink(missing_ok=True)
        return artifact

    def _published(self, address: str, key: Key, artifact: Artifact) -> Artifact:
        """Write an artifact, and return the one that is stored: in a bucket, another machine's may have come first."""
        draft = self.root / "drafts" / address
        with explained(self.root):
            content = _drafted(draft, artifact)
        stage = str(key.get("stage", ""))
        self.written[stage] = self.written.get(stage, 0) + len(content)
        record = canonical({"format": FORMAT, "key": key, "sha256": content_sha256(content)})
        if self._bucket is not None:
            whole = f"{record}\n".encode() + content[:]
            if not self._bucket.create(object_name(address), whole):
                first = self._fetched(address, key)
                if first is not None:
                    shutil.rmtree(draft, ignore_errors=True)
                    return first
                self._bucket.replace(object_name(address), whole)
        with explained(self.root):
            self._publish(address, record, draft)
        if isinstance(content, bytes):
            return artifact
        MAPPED.use(content)
        arrays = read_arrays(content)
        return Artifact({name: arrays[name] for name in artifact.arrays}, artifact.data)

    def _fetched(self, address: str, key: Key) -> Artifact | None:
        """The artifact in the bucket, which is then in the folder, too; None if there is none or it is damaged."""
        whole = self._bucket.get(object_name(address)) if self._bucket is not None else None
        if whole is None:
            return None
        record, _, content = whole.partition(b"\n")
        artifact = _unpacked(record, content, key)
        if artifact is not None:
            with explained(self.root):
                # Without a lock: another process may be fetching the same.
                draft = self.root / "drafts" / f"{address}.{os.getpid()}.{threading.get_ident()}"
                _kept(draft, content)
                self._publish(address, record.decode(), draft)
        elif address not in self.damaged:
            self.damaged.append(address)
        return artifact

    def _publish(self, address: str, record: str, draft: Path) -> None:
        """Complete a draft that has the arrays, and make it the artifact."""
        final = self.path(address)
        try:
            if os.path.lexists(final.parent) and not final.parent.is_dir():
                self._set_aside(final.parent)
            final.parent.mkdir(parents=True, exist_ok=True)
            (draft / _KEY).write_text(record, encoding="utf-8")
            with contextlib.suppress(FileExistsError):
                draft.rename(final)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # not empty: another process published the same content first
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _read(self, address: str, key: Key) -> Artifact | None:
        folder = self.path(address)
        try:
            content = content_of(folder / _ARRAYS)
            artifact = _unpacked((folder / _KEY).read_bytes(), content, key)
            if artifact is not None and not isinstance(content, bytes):
                MAPPED.use(content)
        except OSError:
            artifact = None
        if artifact is None and os.path.lexists(folder):
            self._set_aside(folder)
        return artifact

    def _set_aside(self, folder: Path) -> None:
        """Move a damaged artifact to `damaged/`, so that it is built again and can still be inspected."""
        self.damaged.append(folder.name)
        aside = self.root / "damaged"
        aside.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process moved it first
            folder.rename(Path(tempfile.mkdtemp(dir=aside)) / folder.name)


def object_name(address: str) -> str:
    """The name of an artifact in a store: its folder, or its object in a bucket."""
    return f"objects/{address[:2]}/{address}"


def _held_bytes(artifact: Artifact) -> int:
    """The memory that an artifact takes; the operating system takes that of a mapped file back when it needs it."""
    return artifact.nbytes if artifact.nbytes < LARGE else 0


def _drafted(draft: Path, artifact: Artifact) -> Content:
    """Write the arrays of an artifact into a new folder; a folder found there was left by a killed writer."""
    shutil.rmtree(draft, ignore_errors=True)
    text = np.frombuffer(canonical(artifact.data).encode("utf-8", "surrogatepass"), np.uint8)
    arrays = {_DATA: text, **artifact.arrays}
    if artifact.nbytes + len(text) < LARGE:
        buffer = io.BytesIO()
        write_arrays(buffer, arrays)
        return _kept(draft, buffer.getvalue())
    draft.mkdir(parents=True)
    with (draft / _ARRAYS).open("wb") as file:
        write_arrays(file, arrays)
        file.flush()
        os.fsync(file.fileno())
    return content_of(draft / _ARRAYS)


def _kept(draft: Path, content: bytes) -> bytes:
    """Write the content of the arrays' file into a new folder."""
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    with (draft / _ARRAYS).open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return content


def content_of(path: Path) -> Content:
    """Return the content of a file, mapped if it is large. Raises OSError."""
    return path.read_bytes() if path.stat().st_size < LARGE else mapped(path)


def _unpacked(record: bytes, content: Content, key: Key) -> Artifact | None:
    """The artifact of a record and its arrays; None if they are damaged, or those of another key."""
    try:
        known = json.loads(record)
        intact = isinstance(known, dict) and known.get("sha256") == content_sha256(content)
        if not intact or canonical(known.get("key")) != canonical(key):
            return None
    except (ValueError, RecursionError):
        return None
    loaded = read_arrays(content)
    data = json.loads(loaded.pop(_DATA).tobytes().decode("utf-8", "surrogatepass"))
    return Artifact(loaded, data)
