"""The token positions of all documents. A document is tokenized once for all trials and launches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from harness.core.records import Document, Ints, TokenMap
from harness.data.corpus import Documents
from harness.running.stages.stage import PartStage, Stage, StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.store import Artifact, Key

FORMAT = 2
"""Increased if stages store or score something differently, which invalidates everything stored before."""

_KEPT = 8_000_000
"""Tokens whose positions are kept as token maps."""


def part_of(count: int, part: int, parts: int) -> tuple[int, int]:
    """The first document of a part and the one after its last, if `count` documents are split into `parts`."""
    return count * part // parts, count * (part + 1) // parts


@dataclass(frozen=True, eq=False)
class Tokenize(StoredStage):
    """Tokenizes the corpus. `corpus` is the SHA-256 of its file, `tokenizer` the tokenizer's identity.

    A large corpus is tokenized in several `parts`, which are stages of their own. They do not change the output.
    """

    corpus: str
    tokenizer: str
    parts: int = 1

    @cached_property
    def key(self) -> Key:
        """The corpus and the tokenizer."""
        return {"stage": "tokenize", "format": FORMAT, "corpus": self.corpus, "tokenizer": self.tokenizer}

    @cached_property
    def part_stages(self) -> "tuple[TokenizePart, ...]":
        """The stages that tokenize a large corpus."""
        return TokenizePart.split(self, self.parts)

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The parts, if there are several."""
        return self.part_stages

    def build(self, work: Workspace) -> Artifact:
        """Return `starts`, the token starts of all documents, and `offsets`, (documents + 1,), where each begins."""
        if not self.part_stages:
            return self.tokenized(work, 0, len(work.data.documents))
        parts = [part.read(work).arrays for part in self.part_stages]
        lengths = np.concatenate([np.diff(part["offsets"]) for part in parts])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return Artifact({"starts": np.concatenate([part["starts"] for part in parts]), "offsets": offsets})

    def tokenized(self, work: Workspace, first: int, last: int) -> Artifact:
        """Return the token starts of the documents from number `first` to before `last`, as `build` does of all."""
        documents = work.data.documents
        maps = [work.tokenizer.starts(documents.text(number)).astype(np.int32) for number in range(first, last)]
        offsets = np.cumsum([0, *(len(starts) for starts in maps)])
        return Artifact({"starts": np.concatenate([np.zeros(0, np.int32), *maps]), "offsets": offsets})

    def maps(self, work: Workspace) -> "TokenMaps":
        """Return the token maps of all documents."""

        def read() -> TokenMaps:
            arrays = self.read(work).arrays
            return TokenMaps(work.data.documents, arrays["starts"], arrays["offsets"])

        return work.kept("maps", self.address, read)

    def documents(self, work: Workspace, first: int = 0, last: int | None = None) -> Iterator[Document]:
        """Yield the documents from number `first` to before `last`, with their token maps."""
        maps, documents = self.maps(work), work.data.documents
        for number in range(first, len(documents) if last is None else last):
            yield replace(documents[number], tokens=maps.of(number))


@dataclass(frozen=True, eq=False)
class TokenizePart(PartStage[Tokenize]):
    """Tokenizes a part of a large corpus: the documents of part number `part` of `parts`."""

    def build(self, work: Workspace) -> Artifact:
        """Return the token starts of the part, as in `Tokenize`."""
        return self.whole.tokenized(work, *part_of(len(work.data.documents), self.part, self.parts))


class TokenMaps(Mapping[str, TokenMap]):
    """The token maps of all documents, by id, made of the stored positions when they are read."""

    def __init__(self, documents: Documents, starts: Ints, offsets: Ints) -> None:
        self._documents, self.starts, self.offsets = documents, starts, offsets
        self._kept: dict[int, TokenMap] = {}
        self._kept_tokens = 0

    @property
    def tokens(self) -> int:
        """The number of tokens of all documents."""
        return len(self.starts)

    def of(self, number: int) -> TokenMap:
        """Return the token map of document `number`."""
        known = self._kept.get(number)
        if known is None:
            # int64, as otherwise every search would convert all positions of the document.
            lo, hi = self.offsets[number : number + 2]
            known = TokenMap(self.starts[lo:hi].astype(np.int64))
            self._kept_tokens += len(known.starts)
            if self._kept_tokens > _KEPT:
                self._kept.clear()
                self._kept_tokens = len(known.starts)
            self._kept[number] = known
        return known

    def __getitem__(self, name: str) -> TokenMap:
        return self.of(self._documents.number[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents.ids)

    def __len__(self) -> int:
        return len(self._documents)
