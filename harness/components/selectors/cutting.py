"""Functions that decide where a ranking ends."""

from collections.abc import Sequence

from harness.core.records import Drop, Hit, Outcome


def cut(hits: Sequence[Hit], k: int, reason: str) -> Outcome:
    """Keep the first `k` hits and drop the others for the same reason."""
    return Outcome(list(hits[:k]), [Drop(hit, reason) for hit in hits[k:]])


def adaptive(hits: Sequence[Hit], min_k: int, max_k: int, threshold: float, ratio: float) -> tuple[int, str]:
    """How many hits to keep, at least `min_k` and at most `max_k`, and why the next one is dropped.

    In between, the first hit with a score below `threshold`, or below `ratio` times the previous score, ends the
    ranking. If the previous score is not above zero, no ratio is defined, and the ranking ends too.
    """
    for at, hit in enumerate(hits):
        if at >= max_k:
            return at, f"below rank {max_k}"
        if at < min_k:
            continue
        if hit.score < threshold:
            return at, f"score {hit.score:.4g} < {threshold:g}"
        # The tolerance absorbs rounding errors: a score of 0.72 is not below 0.8 x 0.9.
        if at and (hits[at - 1].score <= 0 or hit.score < hits[at - 1].score * ratio - 1e-9):
            return at, f"score {hit.score:.4g} < {ratio:g} of the {hits[at - 1].score:.4g} before it"
    return len(hits), ""


def range_problem(min_k: int, max_k: int) -> str | None:
    """An error message if `min_k` is more than `max_k`, else None."""
    return f"min_k {min_k} is more than max_k {max_k}" if min_k > max_k else None
