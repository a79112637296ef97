"""The content-addressed store: a stage's output is stored under the digest of everything that determines it."""

import contextlib
import errno
import hashlib
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

from harness.storage.array_file import read_arrays
from harness.storage.bucket import bucket_of
from harness.storage.digest import canonical, digest
from harness.storage.files import explained, keep_file
from harness.storage.locks import locked

Key = Mapping[str, Any]
"""JSON-serializable settings and upstream digests; equal keys mean equal output."""

FORMAT = 1
"""Format number of the `key.json` of an artifact."""

_ARRAYS, _KEY = "arrays.npz", "key.json"


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
    when it is read from disk; a damaged artifact is set aside and built again. A lock per address keeps two launches
    from building the same artifact twice. `built` counts what this object had to build, by stage, which shows that a
    second run is free; `written` is the size of that in bytes.
    """

    MEMORY = 128 * 2**20
    """Maximum bytes of artifacts kept in memory; the least recently used are evicted first."""

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
        self._held += artifact.nbytes
        while self._held > self.MEMORY and len(self._memory) > 1:
            self._held -= self._memory.popitem(last=False)[1].nbytes

    def _build(self, address: str, key: Key, build: Callable[[], Artifact]) -> Artifact:
        with contextlib.ExitStack() as stack:
            with explained(self.root):
                stack.enter_context(locked(self.root / "locks" / address))
                # Another launch may have built it while this one waited for the lock.
                artifact = self._read(address, key)
            if artifact is None:
                artifact = self._published(address, key, build())
                stage = str(key.get("stage", ""))
                self.built[stage] = self.built.get(stage, 0) + 1
            # Waiting processes have their own handle on this file and then find the artifact; later ones read it first.
            (self.root / "locks" / address).unlink(missing_ok=True)
        return artifact

    def _published(self, address: str, key: Key, artifact: Artifact) -> Artifact:
        """Write an artifact, and return the one that is stored: in a bucket, another machine's may have come first."""
        content = _packed(artifact)
        stage = str(key.get("stage", ""))
        self.written[stage] = self.written.get(stage, 0) + len(content)
        record = canonical({"format": FORMAT, "key": key, "sha256": hashlib.sha256(content).hexdigest()})
        if self._bucket is not None:
            whole = f"{record}\n".encode() + content
            if not self._bucket.create(object_name(address), whole):
                first = self._fetched(address, key)
                if first is not None:
                    return first
                self._bucket.replace(object_name(address), whole)
        with explained(self.root):
            self._write(address, record, content, self.root / "drafts" / address)
        return artifact

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
                name = f"{address}.{os.getpid()}.{threading.get_ident()}"
                self._write(address, record.decode(), content, self.root / "drafts" / name)
        elif address not in self.damaged:
            self.damaged.append(address)
        return artifact

    def _write(self, address: str, record: str, content: bytes, temporary: Path) -> None:
        """Publish a folder, made at `temporary`; one found there was left by a killed writer."""
        final = self.path(address)
        if os.path.lexists(final.parent) and not final.parent.is_dir():
            self._set_aside(final.parent)
        final.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            keep_file(temporary, _ARRAYS, content)
            (temporary / _KEY).write_text(record, encoding="utf-8")
            with contextlib.suppress(FileExistsError):
                temporary.rename(final)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # not empty: another process published the same content first
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _read(self, address: str, key: Key) -> Artifact | None:
        folder = self.path(address)
        try:
            artifact = _unpacked((folder / _KEY).read_bytes(), (folder / _ARRAYS).read_bytes(), key)
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


def _packed(artifact: Artifact) -> bytes:
    """An artifact as the content of an uncompressed `.npz` file."""
    text = np.frombuffer(canonical(artifact.data).encode("utf-8", "surrogatepass"), np.uint8)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, __data__=text, **dict(artifact.arrays))
    return file.getvalue()


def _unpacked(record: bytes, content: bytes, key: Key) -> Artifact | None:
    """The artifact of a record and its arrays; None if they are damaged, or those of another key."""
    try:
        known = json.loads(record)
        intact = isinstance(known, dict) and known.get("sha256") == hashlib.sha256(content).hexdigest()
        if not intact or canonical(known.get("key")) != canonical(key):
            return None
    except (ValueError, RecursionError):
        return None
    loaded = read_arrays(content)
    data = json.loads(loaded.pop("__data__").tobytes().decode("utf-8", "surrogatepass"))
    return Artifact(loaded, data)
