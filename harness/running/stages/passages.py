"""A chunked corpus: spans in arrays, and the chunks, texts and overlapping passages derived from them."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from harness.components.roles import Augmenter, Chunker, ScalesChunker
from harness.core.blame import blamed
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings
from harness.core.records import BETWEEN, Chunk, Document, Ints, Spans, TokenMap, indexed_text
from harness.data.dataset import Dataset
from harness.evaluation.metrics.matching import Items, Passage
from harness.storage.store import Artifact

Cut = Callable[[Document], list[Spans]]
"""Returns the spans of a document that has its token map: one list per scale, the finest first."""


def chunk_corpus(chunker: Chunker, data: Dataset, maps: Mapping[str, TokenMap], cut: Cut) -> Artifact:
    """Return all chunks, by document, then start and end, in arrays of shape (chunks,).

    They are `doc` (document number), `start` and `end` (characters), `tokens` and `scale`. Blank and repeated spans are
    left out; a span in several scales counts as the finest. Raises ConfigError if a chunker returns a span outside the
    document, something other than spans, or no chunk at all.
    """
    parts: list[Ints] = []
    for number, doc in enumerate(data.documents):
        scales: dict[tuple[int, int], int] = {}
        with blamed(f"chunker {chunker.name()}: document '{doc.id}'"):
            tilings = cut(replace(doc, tokens=maps[doc.id]))
        for scale, returned in enumerate(tilings):
            for span in _spans(chunker, doc, returned):
                scales.setdefault(span, scale)
        for start, end in scales:
            if not 0 <= start <= end <= len(doc.text):
                raise ConfigError(
                    f"chunker {chunker.name()}: document '{doc.id}' has {len(doc.text)} characters, "
                    f"but the chunker returned the span {start}-{end}"
                )
        spans = sorted(span for span in scales if doc.text[span[0] : span[1]].strip())
        kept = np.array(spans, np.int64).reshape(-1, 2)
        tokens = maps[doc.id].counts(kept[:, 0], kept[:, 1])
        levels = np.array([scales[span] for span in spans], np.int64)
        parts.append(np.column_stack([np.full(len(kept), number), kept, tokens, levels]))
    if not any(map(len, parts)) and any(doc.text.strip() for doc in data.documents):
        named = next(doc.id for doc in data.documents if doc.text.strip())
        raise ConfigError(
            f"chunker {chunker.name()}: returned no chunk for any of {len(data.documents)} documents, such as '{named}'"
        )
    table = np.concatenate(parts) if parts else np.empty((0, 5), np.int64)
    return Artifact(dict(zip(("doc", "start", "end", "tokens", "scale"), table.T.copy(), strict=True)))


def tilings_of(chunker: Chunker) -> Cut:
    """Return a function that cuts a document with a chunker that uses no model."""
    if isinstance(chunker, ScalesChunker):
        return chunker.tilings
    return lambda doc: [chunker.split(doc)]


def _spans(chunker: Chunker, doc: Document, returned: Spans) -> list[tuple[int, int]]:
    """The spans that a chunker returned for a document, as integers."""
    try:
        return [(operator.index(start), operator.index(end)) for start, end in returned]
    except (TypeError, ValueError):
        got = f"split returned {returned!r:.60} for document '{doc.id}'"
        raise ConfigError(f"chunker {chunker.name()}: {got}; expected a list of (start, end) offsets") from None


def spans_by_document(data: Dataset, chunks: Artifact) -> Iterator[tuple[Document, list[tuple[int, int]]]]:
    """Yield each document with the spans of its chunks, in corpus order."""
    docs, starts, ends = (chunks.arrays[name] for name in ("doc", "start", "end"))
    bounds = np.searchsorted(docs, np.arange(len(data.documents) + 1))
    for number, doc in enumerate(data.documents):
        at = slice(bounds[number], bounds[number + 1])
        yield doc, list(zip(starts[at].tolist(), ends[at].tolist(), strict=True))


def augment_corpus(augmenter: Augmenter, data: Dataset, chunks: Artifact, count: Callable[[str], int]) -> Artifact:
    """Return one context per chunk. Raises ConfigError if the augmenter does not return one text per chunk."""
    contexts: list[str] = []
    for doc, spans in spans_by_document(data, chunks):
        where = f"augmenter {augmenter.name()}: document '{doc.id}'"
        with blamed(where, spans):
            given = augmenter.augment(doc, spans)
        if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
            raise ConfigError(f"{where}: augment returned {given!r:.60}; expected a list of texts")
        if len(given) != len(spans):
            raise ConfigError(
                f"augmenter {augmenter.name()}: document '{doc.id}': {len(given)} contexts for {len(spans)} chunks"
            )
        contexts += given
    return context_artifact(contexts, count)


def context_artifact(contexts: list[str], count: Callable[[str], int]) -> Artifact:
    """Return contexts as an artifact, with the number of tokens that each adds to its chunk."""
    # Chunks often share a context, so each distinct one is counted only once.
    known = {context: count(context + BETWEEN) if context else 0 for context in set(contexts)}
    return Artifact({"tokens": np.array([known[context] for context in contexts], np.int64)}, contexts)


class Passages:
    """The chunks of a corpus with their contexts, as trials index and show them.

    `doc`, `start`, `end`, `scale` and `tokens` (context included) have shape (chunks,); a chunk's number is its index.
    """

    def __init__(
        self, data: Dataset, maps: Mapping[str, TokenMap], chunks: Artifact, contexts: Artifact | None
    ) -> None:
        self._data = data
        self._maps = maps
        names = ("doc", "start", "end", "scale")
        self.doc, self.start, self.end, self.scale = (chunks.arrays[name] for name in names)
        self._contexts: Sequence[str] | None = contexts.data if contexts else None
        self._context_tokens = contexts.arrays["tokens"] if contexts else np.zeros(len(self.doc), np.int64)
        self.tokens = chunks.arrays["tokens"] + self._context_tokens
        self._made: dict[tuple[int, int], Chunk] = {}
        self._documents: dict[int, Document] = {}

    def __len__(self) -> int:
        return len(self.doc)

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
        rows = zip(ranked.row(query)[0].tolist(), ranked.reaches(query).tolist(), strict=True)
        return (self.chunk(number, reach) for number, reach in rows)

    def _document(self, number: int) -> Document:
        if number not in self._documents:
            doc = self._data.documents[number]
            self._documents[number] = replace(doc, tokens=self._maps[doc.id])
        return self._documents[number]

    def count(self, doc: int, start: int, end: int) -> int:
        """Return the number of tokens of a span of document number `doc`."""
        return self._document(doc).token_map().count(start, end)

    def blank(self, doc: int, start: int, end: int) -> bool:
        """Whether a span of document number `doc` is only white space."""
        return not self._data.documents[doc].text[start:end].strip()

    @cached_property
    def texts(self) -> list[str]:
        """The indexed texts: context and text of every chunk."""
        documents = self._data.documents
        rows = zip(self.doc.tolist(), self.start.tolist(), self.end.tolist(), strict=True)
        texts = [documents[doc].text[start:end] for doc, start, end in rows]
        return texts if self._contexts is None else list(map(indexed_text, self._contexts, texts))

    def of_documents(self, ids: set[str]) -> dict[str, Ints]:
        """Return the chunk numbers of each of these documents."""
        bounds = {doc: np.searchsorted(self.doc, (self._data.number[doc], self._data.number[doc] + 1)) for doc in ids}
        return {doc: np.arange(*found, dtype=np.int64) for doc, found in bounds.items()}

    def overlapping_chunks(self, items: Items, *, touching: bool = False, copies: bool = False) -> list[Passage]:
        """Return every chunk that shares a character with the first place of an evidence item, in corpus order.

        `copies` includes chunks that overlap any of the item's equivalent places, `touching` those that end where a
        place begins or begin where it ends.
        """
        found: set[int] = set()
        for item in items.evidence:
            if item.absent:
                continue
            for doc, start, end in item.places if copies else item.places[:1]:
                number = self._data.number[doc]
                lo, hi = np.searchsorted(self.doc, (number, number + 1))
                starts, ends = self.start[lo:hi], self.end[lo:hi]
                near = (starts <= end) & (ends >= start) if touching else (starts < end) & (ends > start)
                found |= {int(at) for at in lo + np.flatnonzero(near)}
        chunks = (self.chunk(number) for number in sorted(found))
        return [Passage(chunk.doc, chunk.start, chunk.end, chunk.tokens) for chunk in chunks]
