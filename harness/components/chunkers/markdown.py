"""Chunks that follow the structure of Markdown."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.components.chunkers.packing import Length, packed, pieces_at, tidied
from harness.components.chunkers.recursive import Recursive
from harness.components.component import Positive
from harness.components.roles import Chunker
from harness.core.records import Document, Spans

_LINE_END = re.compile(r"\r\n?|\n")
_DEEPEST = 6


@dataclass(frozen=True)
class Markdown(Chunker):
    """Sections and blocks of Markdown (CommonMark and tables): lists, tables, code blocks and paragraphs of up to
    `size` tokens stay whole.

    A section that fits is not cut. A longer one is cut before its highest-level headings, else between blocks, list
    items, table rows or lines, else like `recursive`; neighbours are then joined up to `size`. A heading stays with the
    text after it.
    """

    size: Positive = 512

    def split(self, doc: Document) -> Spans:
        """Return the chunks without white space at their edges."""
        blocks = _blocks(doc.text)
        return tidied(doc.text, self._section(doc, 0, len(doc.text), 1, blocks))

    def _section(self, doc: Document, start: int, end: int, level: int, blocks: "Sequence[_Block]") -> Spans:
        """The chunks of `[start, end)`; any heading in it above `level` is at its beginning."""
        length = doc.token_map().count
        if length(start, end) <= self.size:
            return [(start, end)] if start < end else []
        if level > _DEEPEST:
            return self._leaf(doc, start, end, blocks, length)
        heads = [
            block.start
            for before, block in itertools.pairwise(blocks)
            if block.heading == level and not before.heading and start < block.start < end
        ]
        chunks: Spans = []
        small: Spans = []
        for piece in pieces_at(heads, start, end):
            if length(*piece) <= self.size:
                small.append(piece)
                continue
            chunks += packed(small, length, size=self.size)
            small = []
            chunks += self._section(doc, *piece, level + 1, blocks)
        return chunks + packed(small, length, size=self.size)

    def _leaf(self, doc: Document, start: int, end: int, blocks: "Sequence[_Block]", length: Length) -> Spans:
        """The chunks of a section without inner headings: cut between blocks, and inside blocks that are too long."""
        inside = [block for block in blocks if start <= block.start < end]
        edges = [block.start for before, block in itertools.pairwise(inside) if not before.heading]
        pieces: Spans = []
        for piece in pieces_at(edges, start, end):
            if length(*piece) <= self.size:
                pieces.append(piece)
                continue
            own = [block for block in inside if piece[0] <= block.start < piece[1]]
            parts = [part for block in own for part in block.parts[1:]]
            pieces += self._parts(doc, piece, parts, headed=bool(own and own[0].heading))
        return packed(pieces, length, size=self.size)

    def _parts(self, doc: Document, block: tuple[int, int], parts: Sequence[int], *, headed: bool) -> Spans:
        """The pieces of a block too long for one chunk: cut between items, rows or lines if any, else as text."""
        length = doc.token_map().count
        made: Spans = []
        for piece in pieces_at(parts, *block):
            if length(*piece) <= self.size:
                made.append(piece)
                continue
            # A cut at a line break would separate a heading from its text.
            cut = Recursive(self.size, separators=(". ", " ")) if headed and not made else Recursive(self.size)
            made += cut.between(doc, *piece)
        return made


@dataclass(frozen=True)
class _Block:
    """A top-level block: its start, the level of its heading (0 if it is none), and the starts of its parts."""

    start: int
    heading: int
    parts: tuple[int, ...]


def _blocks(text: str) -> list[_Block]:
    """The top-level blocks of a text, in order."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def at(line: int) -> int:
        return starts[line] if line < len(starts) else len(text)

    tokens = _parser().parse(text)
    blocks: list[_Block] = []
    for number, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        heading = int(token.tag[1]) if token.type == "heading_open" else 0
        blocks.append(_Block(at(token.map[0]), heading, tuple(at(line) for line in _part_lines(tokens, number))))
    return blocks


def _part_lines(tokens: Sequence[Any], number: int) -> Iterator[int]:
    """The line numbers at which list items, table rows or lines of a code block begin."""
    block = tokens[number]
    if block.type in ("fence", "code_block", "html_block"):
        yield from range(*block.map)
        return
    for token in tokens[number + 1 :]:
        if token.level == block.level:
            return
        if token.type in ("list_item_open", "tr_open") and token.map is not None and token.level <= 2:
            yield token.map[0]


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    # Only blocks are used, so inline markup is not parsed.
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
