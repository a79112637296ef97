"""Vectors by feature hashing, without a model."""

import itertools
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.components.component import Positive
from harness.components.roles import Embedder
from harness.core.records import Embedded

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Hashing(Embedder):
    """Signed feature hashing of lower-cased words and word pairs, unit length: no model, fast, weak.

    Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009; term frequency is damped by its
    square root.
    """

    dimensions: Positive = 512
    pairs: bool = True

    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """Return one unit vector per text, (texts, dimensions); a text without words has the zero vector."""
        rows = [[zlib.crc32(feature.encode("utf-8", "surrogatepass")) for feature in self._features(t)] for t in texts]
        codes = np.fromiter(itertools.chain.from_iterable(rows), np.int64)
        places = np.repeat(np.arange(len(texts)), list(map(len, rows))) * self.dimensions
        places += (codes >> 1) % self.dimensions
        sums = np.bincount(places, np.where(codes & 1, 1.0, -1.0), len(texts) * self.dimensions)
        vectors = sums.reshape(len(texts), self.dimensions)
        vectors = np.sign(vectors) * np.sqrt(np.abs(vectors))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return Embedded(unit.astype(np.float32), np.zeros(len(texts), np.bool_))

    def _features(self, text: str) -> list[str]:
        words = _WORD.findall(text.lower())
        return words + [f"{a} {b}" for a, b in itertools.pairwise(words)] if self.pairs else words
