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
        vectors = np.zeros((len(texts), self.dimensions), np.float64)
        for row, text in zip(vectors, texts, strict=True):
            words = _WORD.findall(text.lower())
            features = words + [f"{a} {b}" for a, b in itertools.pairwise(words)] if self.pairs else words
            for feature in features:
                code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
                row[(code >> 1) % self.dimensions] += 1 if code & 1 else -1
        vectors = np.sign(vectors) * np.sqrt(np.abs(vectors))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return Embedded(unit.astype(np.float32), np.zeros(len(texts), np.bool_))
