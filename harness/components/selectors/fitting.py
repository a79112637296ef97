"""Filling a token budget."""

from collections.abc import Sequence
from typing import Literal

from harness.core.records import Chunk, Drop, Hit, Outcome

Overflow = Literal["stop", "skip", "cut"]


def fitted(hits: Sequence[Hit], tokens: int, overflow: Overflow) -> Outcome:
    """Keep hits in rank order that fit into `tokens`, contexts included; the budget is never exceeded.

    If a hit does not fit, `stop` drops it and all later ones, `skip` drops it and tries the next, and `cut` keeps its
    beginning and drops all later ones. The budget of a metric such as `recall@1000t` is another one, applied later and
    always with a cut: see `Ranking.within`.
    """
    kept: list[Hit] = []
    dropped: list[Drop] = []
    left, full = tokens, False
    for hit in hits:
        if full or hit.chunk.tokens > left:
            part = hit.chunk.cut(left) if overflow == "cut" and not full else None
            full = full or overflow != "skip"
            if part is not None and any(_inside(part, other.chunk) for other in kept):
                dropped.append(Drop(hit, f"{left} left, and the part that fits is already included"))
                continue
            if part is None:
                dropped.append(Drop(hit, f"{hit.chunk.tokens} tokens, {left} left"))
                continue
            hit = hit._replace(chunk=part)
        kept.append(hit)
        left -= hit.chunk.tokens
    return Outcome(kept, dropped)


def _inside(part: Chunk, other: Chunk) -> bool:
    """Whether all text of a part is in another chunk, ignoring white space at its end."""
    end = part.start + len(part.text.rstrip())
    return part.doc == other.doc and other.start <= part.start and end <= other.end
