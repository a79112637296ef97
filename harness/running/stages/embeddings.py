"""Vectors of texts. Each text is embedded once per embedder, for all chunkers, trials and launches."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from harness.components.component import identity
from harness.components.roles import Embedder
from harness.core.blame import blamed, shown
from harness.core.errors import ConfigError
from harness.core.rankings import unit_rows
from harness.core.records import Chunk, Embedded
from harness.core.sequences import blocks
from harness.storage.digest import digest
from harness.storage.locks import locked
from harness.storage.vector_shards import VectorShards

_SLAB, _LARGEST_SLAB = 256, 4096
"""The least and the greatest number of texts in a file of vectors. A killed launch loses those of the last file: its
size grows with what is done, so that there are few files and at most a fifth of the work is lost."""

SORTED = 100_000
"""Texts held in memory and sorted by length at once: texts of one length need no padding."""

_GREATEST = 1e18
"""The square of a larger number overflows float32."""

_WORD = re.compile(r"\w")
"""A text without a match has nothing to embed; the built-in `hashing` returns zeros for it."""

_SEEN = 100_000
"""The number of chunks kept in memory with their vectors, for the selector steps of many trials."""

Progress = Callable[[float], None]


def namespace(embedder: Embedder, *, queries: bool) -> str:
    """Return the cache namespace of an embedder's vectors; queries and documents may have different prompts."""
    return digest({"embedder": identity(embedder), "queries": queries})


class Embeddings:
    """Vectors from the store, computed if they are missing. `built["embed"]` counts the texts embedded."""

    def __init__(self, shards: VectorShards, built: dict[str, int]) -> None:
        self._shards, self._built = shards, built
        self._alone: set[str] = set()
        self._dimensions: dict[str, int] = {}
        self._seen: dict[str, dict[int, tuple[Chunk, Chunk]]] = {}

    @property
    def damaged(self) -> int:
        """The number of damaged files that were set aside."""
        return self._shards.damaged

    def missing(self, embedder: Embedder, texts: Sequence[str], *, queries: bool = False) -> Sequence[str]:
        """Return the distinct texts that have no vector yet, in order of first appearance."""
        return self._shards.missing(namespace(embedder, queries=queries), texts)

    def size(self, embedder: Embedder) -> tuple[int, int]:
        """Return how many texts of documents have a vector, and its dimensions; zeros if there are none."""
        return self._shards.size(namespace(embedder, queries=False))

    @contextlib.contextmanager
    def alone(self, embedder: Embedder) -> Iterator[None]:
        """Lock out other launches on the store, so that they do not embed, and pay for, the same texts meanwhile."""
        name = digest(identity(embedder))[:24]
        if name in self._alone:
            yield
            return
        with locked(self._shards.root.parent / "locks" / f"embed-{name}"):
            self._alone.add(name)
            try:
                yield
            finally:
                self._alone.discard(name)

    def fill(
        self, embedder: Embedder, texts: Sequence[str], *, queries: bool = False, progress: Progress | None = None
    ) -> None:
        """Compute the missing vectors and store them in batches; `progress` gets the lengths of what is done.

        The longest texts come first; of very many texts, the longest of each `SORTED` texts.
        """
        if self.missing(embedder, texts, queries=queries):
            with self.alone(embedder):
                for block in blocks(self.missing(embedder, texts, queries=queries), SORTED):
                    self._fill(embedder, block, queries=queries, progress=progress)

    def _fill(self, embedder: Embedder, texts: list[str], *, queries: bool, progress: Progress | None) -> None:
        left = sorted(texts, key=lambda text: (-len(text), text))
        done = 0
        while done < len(left):
            slab = left[done : done + min(max(_SLAB, done // 4), _LARGEST_SLAB)]
            done += len(slab)
            self.add(embedder, slab, queries=queries)
            if progress:
                progress(sum(map(len, slab)))

    def add(self, embedder: Embedder, texts: Sequence[str], *, queries: bool) -> None:
        """Embed texts that are known to have no vector, and store their vectors in one file."""
        self._shards.put(namespace(embedder, queries=queries), texts, self._embedded(embedder, texts, queries=queries))
        self._built["embed"] = self._built.get("embed", 0) + len(texts)

    def embed(self, embedder: Embedder, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """Return vectors for all texts, in order; missing ones are computed. Raises ConfigError if they are invalid."""
        place = namespace(embedder, queries=queries)
        found = self._shards.get(place, texts)
        if found is None:
            self.fill(embedder, texts, queries=queries)
            found = self._shards.get(place, texts)
        # If a file was damaged between writing and reading, it was set aside: continue without it.
        return found if found is not None else self._embedded(embedder, texts, queries=queries)

    def _embedded(self, embedder: Embedder, texts: Sequence[str], *, queries: bool) -> Embedded:
        """An embedder's output for texts, checked before use. Raises ConfigError if it is invalid."""
        where, given = f"embedder {embedder.name()}", list(texts)
        with blamed(embedder, f"{where}: text {shown(given[0])}", given):
            made = embedder.embed(given, queries=queries)
        if not isinstance(made, Embedded):
            raise ConfigError(f"{where}: embed must return an Embedded(vectors, truncated), not {type(made).__name__}")
        vectors, truncated = np.asarray(made.vectors), np.asarray(made.truncated)
        if vectors.ndim != 2 or len(vectors) != len(texts) or truncated.shape != (len(texts),):
            raise ConfigError(
                f"{where}: returned vectors of shape {vectors.shape} and truncated {truncated.shape} for {len(texts)} "
                f"texts, the first {shown(given[0])}; expected ({len(texts)}, dimensions) and ({len(texts)},)"
            )
        if vectors.dtype.kind not in "fiu":
            raise ConfigError(f"{where}: returned type {vectors.dtype} for {shown(given[0])}; expected float32")
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = np.ma.getdata(vectors).astype(np.float32)
            bad = np.flatnonzero(~(np.abs(vectors) < _GREATEST).all(axis=1))
        if len(bad):
            raise ConfigError(f"{where}: returned NaN or a number that is too large for {shown(given[bad[0]])}")
        empty = [at for at in np.flatnonzero(~vectors.any(axis=1)).tolist() if _WORD.search(given[at])]
        if empty:
            raise ConfigError(f"{where}: returned a vector of zeros for {shown(given[empty[0]])}; it has no direction")
        wide = self._dimensions.setdefault(digest(identity(embedder)), vectors.shape[1])
        if vectors.shape[1] != wide or not wide:
            raise ConfigError(
                f"{where}: returned {vectors.shape[1]} dimensions for {shown(given[0])}, but {wide} for other texts"
            )
        return Embedded(vectors, truncated.astype(np.bool_, copy=False))

    def of_chunks(self, embedder: Embedder, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the chunks with the unit vectors of their indexed texts."""
        # Passages creates each chunk once, so id() identifies it; keeping the chunk keeps its id from being reused.
        seen = self._seen.setdefault(namespace(embedder, queries=False), {})
        new = {id(chunk): chunk for chunk in chunks if id(chunk) not in seen}
        if len(seen) + len(new) > _SEEN:
            seen.clear()
            new = {id(chunk): chunk for chunk in chunks}
        if new:
            rows = unit_rows(self.embed(embedder, [chunk.indexed for chunk in new.values()]).vectors)
            for chunk, row in zip(new.values(), rows, strict=True):
                seen[id(chunk)] = chunk, replace(chunk, vector=row)
        return [seen[id(chunk)][1] for chunk in chunks]
