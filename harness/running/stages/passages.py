"""The chunks of a corpus with their contexts, as trials index and show them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from harness.core.rankings import Rankings
from harness.core.records import Chunk, Document, Ints, indexed_text
from harness.core.sequences import Lazy
from harness.data.corpus import Documents
from harness.evaluation.metrics.matching import Items, Passage
from harness.running.stages.tokenize import TokenMaps, part_of
from harness.storage.store import Artifact

_BLOCK = 65_536
"""Chunks whose offsets are converted to Python numbers at once."""


class Passages:
    """The chunks of a corpus with their contexts, as trials index and show them.

    `doc`, `start`, `end`, `scale` and `tokens` (context included) have shape (chunks,); a chunk's number is its index.
    `complete` says whether these are all chunks that could have been retrieved; of another system, they are not.
    """

    def __init__(
        self,
        documents: Documents,
        maps: TokenMaps,
        chunks: Artifact,
        contexts: Artifact | None,
        *,
        complete: bool = True,
    ) -> None:
        self.documents = documents
        self._maps = maps
        self._complete = complete
        names = ("doc", "start", "end", "scale")
        self.doc, self.start, self.end, self.scale = (chunks.arrays[name] for name in names)
        self._contexts: Sequence[str] | None = contexts.data if contexts else None
        self._context_tokens = contexts.arrays["tokens"] if contexts else np.zeros(len(self.doc), np.int64)
        self.tokens = chunks.arrays["tokens"] + self._context_tokens
        self._made: dict[tuple[int, int], Chunk] = {}
        self._known: dict[int, Document] = {}

    def __len__(self) -> int:
        return len(self.doc)

    def share_of_text(self) -> float:
        """Return the share of the corpus' characters that are in at least one chunk."""
        lengths = self.documents.lengths
        # All documents one after another; chunks are in the order of their starts, but may contain each other.
        base = self.doc * int(lengths.max(initial=0))
        starts, ends = base + self.start, base + self.end
        reached = np.maximum.accumulate(ends)
        reached = np.concatenate([np.zeros(1, np.int64), reached[:-1]])[: len(ends)]
        covered = np.maximum(0, ends - np.maximum(starts, reached)).sum()
        return float(covered / max(1, int(lengths.sum())))

    def chunk(self, number: int, reach: int = 0) -> Chunk:
        """Return chunk `number`, or with a `reach` the passage from its start to that offset. Results are cached."""
        if (number, reach) not in self._made:
            doc = self._document(int(self.doc[number]))
            start, end = int(self.start[number]), int(self.end[number])
            context_tokens = int(self._context_tokens[number])
            self._made[number, reach] = Chunk(
                doc.id,
                start,
                reach or end,
                doc.text[start : reach or end],
                self._contexts[number] if self._contexts else "",
                context_tokens + doc.token_map().count(start, reach) if reach else int(self.tokens[number]),
                context_tokens,
                int(self.scale[number]),
                doc,
            )
        return self._made[number, reach]

    def hits(self, ranked: Rankings, query: int) -> Iterator[Chunk]:
        """Yield the hits of a ranking for a query, best first, each as long as the ranking says."""
        made = self._made
        for hit in zip(ranked.row(query)[0].tolist(), ranked.reaches(query).tolist(), strict=True):
            yield made.get(hit) or self.chunk(*hit)

    def _document(self, number: int) -> Document:
        if number not in self._known:
            doc = self.documents[number]
            self._known[number] = replace(doc, tokens=self._maps.of(number))
        return self._known[number]

    def count(self, doc: int, start: int, end: int) -> int:
        """Return the number of tokens of a span of document number `doc`."""
        return self._document(doc).token_map().count(start, end)

    def blank(self, doc: int, start: int, end: int) -> bool:
        """Whether a span of document number `doc` is only white space."""
        return not self.documents.text(doc)[start:end].strip()

    @cached_property
    def texts(self) -> "ChunkTexts":
        """The indexed texts: context and text of every chunk."""
        return ChunkTexts(self.documents, (self.doc, self.start, self.end), self._contexts)

    def part(self, part: int, parts: int) -> tuple[int, int]:
        """Return the first chunk of a part of the corpus and the one after its last; see `part_of`."""
        first, last = np.searchsorted(self.doc, part_of(len(self.documents), part, parts))
        return int(first), int(last)

    def of_documents(self, ids: set[str]) -> dict[str, Ints]:
        """Return the chunk numbers of each of these documents."""
        numbers = {doc: self.documents.number[doc] for doc in ids}
        bounds = {doc: np.searchsorted(self.doc, (number, number + 1)) for doc, number in numbers.items()}
        return {doc: np.arange(*found, dtype=np.int64) for doc, found in bounds.items()}

    def overlapping_chunks(self, items: Items, *, touching: bool = False, copies: bool = False) -> list[Passage]:
        """Return every chunk that shares a character with the first place of an evidence item, in corpus order.

        `copies` includes chunks that overlap any of the item's equivalent places, `touching` those that end where a
        place begins or begin where it ends. Of another system, whose chunks are not known, these are entire documents.
        """
        if not self._complete:
            places = (place for item in items.evidence if not item.absent for place in item.places)
            docs = sorted({self.documents.number[place.doc] for place in places})
            return [Passage(self.documents.ids[doc], 0, int(self.documents.lengths[doc])) for doc in docs]
        found: set[int] = set()
        for item in items.evidence:
            if item.absent:
                continue
            for doc, start, end in item.places if copies else item.places[:1]:
                number = self.documents.number[doc]
                lo, hi = np.searchsorted(self.doc, (number, number + 1))
                starts, ends = self.start[lo:hi], self.end[lo:hi]
                near = (starts <= end) & (ends >= start) if touching else (starts < end) & (ends > start)
                found |= {int(at) for at in lo + np.flatnonzero(near)}
        chunks = (self.chunk(number) for number in sorted(found))
        return [Passage(chunk.doc, chunk.start, chunk.end, chunk.tokens) for chunk in chunks]


class ChunkTexts(Lazy[str]):
    """The indexed texts of all chunks, cut out of the documents when they are read.

    `columns` are document number, start and end of each chunk, (chunks,); `contexts` is None if chunks have none.
    """

    def __init__(
        self, documents: Documents, columns: tuple[Ints, Ints, Ints], contexts: Sequence[str] | None = None
    ) -> None:
        self._documents, self._columns, self._contexts = documents, columns, contexts

    def __len__(self) -> int:
        return len(self._columns[0])

    def _item(self, number: int) -> str:
        doc, start, end = (int(column[number]) for column in self._columns)
        text = self._documents.text(doc)[start:end]
        return text if self._contexts is None else indexed_text(self._contexts[number], text)

    def _items(self, numbers: range) -> Iterator[str]:
        text, of = "", -1
        for begin in range(0, len(numbers), _BLOCK):
            block = numbers[begin : begin + _BLOCK]
            chosen = np.arange(block.start, block.stop, block.step)
            rows = zip(*(column[chosen].tolist() for column in self._columns), strict=True)
            for at, (doc, start, end) in zip(block, rows, strict=True):
                if doc != of:
                    text, of = self._documents.text(doc), doc
                cut = text[start:end]
                yield cut if self._contexts is None else indexed_text(self._contexts[at], cut)
