"""The content-addressed store: a stage's output lives under the digest of everything that determines it."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.storage.digest import canonical, digest
from harness.storage.files import explained
from harness.storage.locks import locked

Key = Mapping[str, Any]
"""JSON-able settings and upstream digests; equal keys mean equal output."""

FORMAT = 1
"""Of the record beside an artifact."""

_ARRAYS, _KEY = "arrays.npz", "key.json"


@dataclass(frozen=True)
class Artifact:
    """What a stage leaves behind: numpy arrays and one JSON value. Never a pickle."""

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    data: Any = None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


class Store:
    """Artifacts in a folder: `objects/ab/<digest>/` holds `arrays.npz` and the `key.json` that was hashed.

    An artifact appears by an atomic rename, so a killed writer leaves nothing behind; its checksum is compared at every
    first read, and a damaged one is set aside and built again. A lock per address keeps two launches from building the
    same artifact twice. `built` counts what this object had to build, by stage: the evidence that a second run is free.
    """

    MEMORY = 128 * 2**20
    """Bytes of artifacts kept at hand, the least recently used going first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.built: dict[str, int] = {}
        self.damaged: list[str] = []
        self._memory: OrderedDict[str, Artifact] = OrderedDict()
        self._held = 0

    def path(self, address: str) -> Path:
        return self.root / "objects" / address[:2] / address

    def has(self, key: Key) -> bool:
        """Whether an artifact stands under this key (its checksum is looked at when it is read)."""
        return (self.path(digest(key)) / _KEY).is_file()

    def get(self, key: Key, build: Callable[[], Artifact]) -> Artifact:
        """The artifact of `key`, read if it is stored, else built, stored and returned."""
        address = digest(key)
        if address in self._memory:
            self._memory.move_to_end(address)
            return self._memory[address]
        with explained(self.root):
            artifact = self._read(address, key)
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
                artifact = build()
                with explained(self.root):
                    self._publish(address, key, artifact)
                stage = str(key.get("stage", ""))
                self.built[stage] = self.built.get(stage, 0) + 1
            # Whoever still waits on this file holds its own handle and finds the artifact; late-comers read it first.
            (self.root / "locks" / address).unlink(missing_ok=True)
        return artifact

    def _publish(self, address: str, key: Key, artifact: Artifact) -> None:
        final = self.path(address)
        if os.path.lexists(final.parent) and not final.parent.is_dir():
            self._set_aside(final.parent)
        final.parent.mkdir(parents=True, exist_ok=True)
        # The lock of the address is held: a draft that stands here was left by a writer that was killed.
        draft = self.root / "drafts" / address
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            text = np.frombuffer(canonical(artifact.data).encode("utf-8", "surrogatepass"), np.uint8)
            with (draft / _ARRAYS).open("wb") as file:
                np.savez(file, allow_pickle=False, __data__=text, **dict(artifact.arrays))
                file.flush()
                os.fsync(file.fileno())
            checksum = hashlib.sha256((draft / _ARRAYS).read_bytes()).hexdigest()
            (draft / _KEY).write_text(canonical({"format": FORMAT, "key": key, "sha256": checksum}), encoding="utf-8")
            with contextlib.suppress(FileExistsError):
                draft.rename(final)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # not empty: somebody published the same content first
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _read(self, address: str, key: Key) -> Artifact | None:
        folder = self.path(address)
        try:
            record = json.loads((folder / _KEY).read_text(encoding="utf-8"))
            content = (folder / _ARRAYS).read_bytes()
            whole = isinstance(record, dict) and record.get("sha256") == hashlib.sha256(content).hexdigest()
            same = whole and canonical(record.get("key")) == canonical(key)
        except (OSError, ValueError, RecursionError):
            same = False
        if not same:
            if os.path.lexists(folder):
                self._set_aside(folder)
            return None
        with (folder / _ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            loaded = {name: arrays[name] for name in arrays.files}
        data = json.loads(loaded.pop("__data__").tobytes().decode("utf-8", "surrogatepass"))
        return Artifact(loaded, data)

    def _set_aside(self, folder: Path) -> None:
        """Move a damaged artifact out of the way, so that it is built again and can still be looked at."""
        self.damaged.append(folder.name)
        aside = self.root / "damaged"
        aside.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            folder.rename(Path(tempfile.mkdtemp(dir=aside)) / folder.name)
