"""The token positions of all documents. A document is tokenized once for all trials and launches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from harness.core.records import Document, TokenMap
from harness.running.stages.stage import StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.store import Artifact, Key

FORMAT = 2
"""Increased if stages store or score something differently, which invalidates everything stored before."""


@dataclass(frozen=True, eq=False)
class Tokenize(StoredStage):
    """Tokenizes the corpus. `corpus` is the SHA-256 of its file, `tokenizer` the tokenizer's identity."""

    corpus: str
    tokenizer: str

    @cached_property
    def key(self) -> Key:
        """The corpus and the tokenizer."""
        return {"stage": "tokenize", "format": FORMAT, "corpus": self.corpus, "tokenizer": self.tokenizer}

    def build(self, work: Workspace) -> Artifact:
        """Return `starts`, the token starts of all documents, and `offsets`, (documents + 1,), where each begins."""
        maps = [work.tokenizer.starts(doc.text) for doc in work.data.documents]
        offsets = np.cumsum([0, *(len(starts) for starts in maps)])
        return Artifact({"starts": np.concatenate(maps).astype(np.int32), "offsets": offsets})

    def maps(self, work: Workspace) -> Mapping[str, TokenMap]:
        """Return the token map of each document, by id."""

        def read() -> Mapping[str, TokenMap]:
            arrays = self.read(work).arrays
            starts, offsets = arrays["starts"].astype(np.int64), arrays["offsets"].tolist()
            bounds = zip(work.data.documents, offsets, offsets[1:], strict=False)
            return {doc.id: TokenMap(starts[lo:hi]) for doc, lo, hi in bounds}

        return work.kept("maps", self.address, read)

    def documents(self, work: Workspace) -> Iterator[Document]:
        """Yield the documents with their token maps."""
        maps = self.maps(work)
        for doc in work.data.documents:
            yield replace(doc, tokens=maps[doc.id])
