"""Vectors of texts, in Arrow files that never change, so that many processes add to them without locks."""

import contextlib
from collections.abc import Container, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.core.errors import DataError
from harness.core.records import Embedded, Ints
from harness.core.sequences import blocks, chosen
from harness.storage.bucket import bucket_of
from harness.storage.files import explained, free_name, keep_file
from harness.storage.mapped import MAPPED
from harness.storage.model_outputs import text_key
from harness.storage.sqlite_vectors import SqliteVectors
from harness.storage.vector_file import (
    KEY,
    SUFFIX,
    Keys,
    VectorFile,
    is_sound,
    keys_of,
    packed,
    read_vectors,
)

_BLOCK = 65_536
"""Texts looked up at once."""


class VectorShards:
    """Vectors by namespace (an embedder) and text, in `root/<namespace>/<sha256>.arrow`. All can be computed again.

    A file is verified when a process first reads it; a damaged one is set aside, and its texts are missing. If several
    files contain a text, the oldest counts.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._bucket = bucket_of(root.parent)
        self.damaged = 0
        """The number of damaged files that were set aside."""
        self._spaces: dict[str, _Space] = {}

    def missing(self, namespace: str, texts: Sequence[str]) -> Sequence[str]:
        """The distinct texts without a vector in `namespace`, in order of first appearance.

        If they are many, they are read from `texts` again when they are needed.
        """
        space = self._refreshed(namespace)
        keys, numbers, seen = [np.empty(0, KEY)], [np.empty(0, np.int64)], 0
        for block in blocks(texts, _BLOCK):
            asked = keys_of([text_key(text) for text in block])
            lacking = np.flatnonzero(space.rows(asked) < 0)
            keys.append(asked[lacking])
            numbers.append(seen + lacking)
            seen += len(block)
        _, first = np.unique(np.concatenate(keys), return_index=True)
        left = chosen(texts, np.concatenate(numbers)[np.sort(first)])
        return left if len(left) > _BLOCK else list(left)

    def size(self, namespace: str) -> tuple[int, int]:
        """The number of vectors and their dimensions; zeros if there are none."""
        files = self._refreshed(namespace).files.values()
        return sum(len(file.vectors) for file in files), max((file.vectors.shape[1] for file in files), default=0)

    def get(self, namespace: str, texts: Sequence[str]) -> Embedded | None:
        """The vectors of all texts, in their order; None if any is missing.

        Raises DataError if the stored vectors differ in length.
        """
        if not texts:
            return Embedded(np.empty((0, 0), np.float32), np.empty(0, np.bool_))
        keys, space = keys_of([text_key(text) for text in texts]), self._space(namespace)
        rows = space.rows(keys)
        if (rows < 0).any():
            rows = self._refreshed(namespace).rows(keys)
        if (rows < 0).any():
            return None
        if len({file.vectors.shape[1] for file in space.files.values()}) > 1:
            raise DataError(f"{self.root}: vectors of one embedder differ in length; use another --store folder")
        return space.at(rows)

    def put(self, namespace: str, texts: Sequence[str], embedded: Embedded) -> None:
        """Store the vectors of distinct texts in a new file. Raises StoreError if it cannot be written."""
        if not len(texts) == len(embedded.vectors) == len(embedded.truncated):
            raise ValueError(f"{len(texts)} texts, {len(embedded.vectors)} vectors, {len(embedded.truncated)} flags")
        keys = keys_of([text_key(text) for text in texts])
        self._write(namespace, VectorFile(keys, np.asarray(embedded.vectors, np.float32), embedded.truncated))

    def _write(self, namespace: str, content: VectorFile) -> None:
        name, made = packed(content)
        with explained(self.root.parent):
            keep_file(self.root / namespace, name, made)
        if self._bucket is not None:
            self._bucket.create(f"{self.root.name}/{namespace}/{name}", made)

    def _fetch(self, namespace: str, known: Container[str]) -> None:
        """Fetch the files that other machines have added to the bucket."""
        bucket, folder = self._bucket, self.root / namespace
        if bucket is None:
            return
        for entry in list(bucket.entries(f"{self.root.name}/{namespace}/")):
            name = entry.name.rpartition("/")[2]
            if name in known or (folder / name).exists():
                continue
            content = bucket.get(entry.name)
            if content is None:
                continue  # pruned meanwhile
            if is_sound(name, content):
                with explained(self.root.parent):
                    keep_file(folder, name, content)
            else:
                self.damaged += 1
                bucket.remove([entry.name])

    def _space(self, namespace: str) -> "_Space":
        if namespace not in self._spaces:
            self._copy_from_sqlite(namespace)
            self._spaces[namespace] = _Space()
            self._refreshed(namespace)
        return self._spaces[namespace]

    def _copy_from_sqlite(self, namespace: str) -> None:
        """Copy the vectors of a store of an earlier version; they may have cost money."""
        old = self.root.with_suffix(".sqlite")
        if old.is_file() and not (self.root / namespace).exists():
            for block in SqliteVectors(old).blocks(namespace):
                self._write(namespace, block)

    def _refreshed(self, namespace: str) -> "_Space":
        """The namespace with the files that were added since."""
        space, folder = self._space(namespace), self.root / namespace
        self._fetch(namespace, space.files)
        with explained(self.root.parent):
            paths = [path for path in folder.glob(f"*{SUFFIX}") if path.name not in space.files]
            for path in sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name)):
                content = read_vectors(path) if path.is_file() else None
                if content is not None:
                    space.add(path.name, content)
                else:
                    self.damaged += 1
                    with contextlib.suppress(FileNotFoundError):  # another process has set it aside
                        path.replace(free_name(path, "damaged"))
        return space


class _Space:
    """The files of a namespace, by name, and an index of their keys, made when it is first needed."""

    def __init__(self) -> None:
        self.files: dict[str, VectorFile] = {}
        self._index: tuple[Keys, npt.NDArray[np.uint64], Ints] | None = None

    def add(self, name: str, content: VectorFile) -> None:
        """Add a file; its rows follow those of the files before it."""
        self.files[name] = content
        self._index = None

    def rows(self, keys: Keys) -> Ints:
        """The row of each key, counted over all files; -1 for a key in none of them."""
        if self._index is None:
            every = np.concatenate([np.empty(0, KEY), *(file.keys for file in self.files.values())])
            # Sorted by their first 8 bytes, which is ten times as fast; the first of equal keys stays the first.
            order = np.argsort(_beginnings(every), kind="stable")
            self._index = every, _beginnings(every)[order], order
        every, beginnings, order = self._index
        wanted = _beginnings(keys)
        at = np.searchsorted(beginnings, wanted)
        found = np.full(len(keys), -1)
        left = np.flatnonzero(at < len(order))
        while len(left):  # more than once only if different keys begin alike
            left = left[beginnings[at[left]] == wanted[left]]
            same = every[order[at[left]]] == keys[left]
            found[left[same]] = order[at[left[same]]]
            left = left[~same]
            at[left] += 1
            left = left[at[left] < len(order)]
        return found

    def at(self, rows: Ints) -> Embedded:
        """The vectors of rows that exist."""
        files = list(self.files.values())
        starts = np.cumsum([0, *(len(file.keys) for file in files)])
        vectors = np.empty((len(rows), files[0].vectors.shape[1]), np.float32)
        truncated = np.empty(len(rows), np.bool_)
        owner = np.searchsorted(starts, rows, side="right") - 1
        for number in np.unique(owner):
            here = owner == number
            inside = rows[here] - starts[number]
            vectors[here], truncated[here] = files[number].vectors[inside], files[number].truncated[inside]
            if (mapping := files[number].mapping) is not None:
                MAPPED.use(mapping)
        return Embedded(vectors, truncated)


def _beginnings(keys: Keys) -> npt.NDArray[np.uint64]:
    """The first 8 bytes of each key, (keys,)."""
    return np.ascontiguousarray(np.ascontiguousarray(keys).view(np.uint64)[:: KEY.itemsize // 8])
