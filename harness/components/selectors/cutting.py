"""Where to end a ranking."""

from collections.abc import Sequence

from harness.core.records import Drop, Hit, Outcome


def cut(hits: Sequence[Hit], k: int, reason: str) -> Outcome:
    """The first `k` hits; the others are dropped for one reason."""
    return Outcome(list(hits[:k]), [Drop(hit, reason) for hit in hits[k:]])


def adaptive(hits: Sequence[Hit], min_k: int, max_k: int, threshold: float, ratio: float) -> tuple[int, str]:
    """How many hits to keep, and why the next one is not: at least `min_k` of them, at most `max_k`.

    Between both, a hit ends the ranking that scores below `threshold`, or below `ratio` times the one before it. Where
    that one is not above zero, no ratio can be told, and the ranking ends as well.
    """
    for at, hit in enumerate(hits):
        if at >= max_k:
            return at, f"below rank {max_k}"
        if at < min_k:
            continue
        if hit.score < threshold:
            return at, f"score {hit.score:.4g} < {threshold:g}"
        # Four fifths of 0.9 are 0.72, whatever the last bits say.
        if at and (hits[at - 1].score <= 0 or hit.score < hits[at - 1].score * ratio - 1e-9):
            return at, f"score {hit.score:.4g} < {ratio:g} of the {hits[at - 1].score:.4g} before it"
    return len(hits), ""


def range_problem(min_k: int, max_k: int) -> str | None:
    """What is wrong with the least and the most hits to keep, or None."""
    return f"min_k {min_k} is more than max_k {max_k}" if min_k > max_k else None
