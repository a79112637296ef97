"""The formulas of the Chroma chunking report, as published, for comparison with its tables.

Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma Technical Report, 2024. They differ from the
harness's own span measures: only the place named in the data set counts, overlapping chunks are counted as often as
they are retrieved, and a chunk that only touches a span belongs to it.
"""

from harness.evaluation.metrics.intervals import Interval, size, union
from harness.evaluation.metrics.matching import Ranking


def _parts(ranking: Ranking, k: int | None) -> tuple[int, int, int, int]:
    """Character counts `(shared, gold, retrieved with repeats, gold not retrieved)`."""
    gold: dict[str, list[Interval]] = {}
    for item in ranking.items.evidence:
        gold.setdefault(item.places[0].doc, []).append((item.places[0].start, item.places[0].end))
    shared: dict[str, list[Interval]] = {}
    retrieved = 0
    for passage in ranking.passages[:k]:
        retrieved += passage.end - passage.start
        for start, end in gold.get(passage.doc, []):
            shared.setdefault(passage.doc, []).append((max(start, passage.start), min(end, passage.end)))
    covered = sum(size(union(parts)) for parts in shared.values())
    # The report sums the lengths of the references, so overlapping references are counted repeatedly.
    listed = sum(end - start for parts in gold.values() for start, end in parts)
    unused = sum(size(_outside(part, union(shared.get(doc, [])))) for doc, parts in gold.items() for part in parts)
    return covered, listed, retrieved, unused


def _outside(interval: Interval, disjoint: list[Interval]) -> list[Interval]:
    """The parts of `interval` outside the disjoint, sorted intervals."""
    left: list[Interval] = []
    at, end = interval
    for start, stop in disjoint:
        if stop <= at or start >= end:
            continue
        if start > at:
            left.append((at, start))
        at = max(at, stop)
    return [*left, (at, end)] if at < end else left


def chroma_recall(ranking: Ranking, k: int | None) -> float:
    """Gold characters retrieved / total length of the references."""
    covered, listed, _, _ = _parts(ranking, k)
    return covered / listed


def chroma_precision(ranking: Ranking, k: int | None) -> float:
    """Gold characters retrieved / total length of the retrieved chunks, repeats counted."""
    covered, _, retrieved, _ = _parts(ranking, k)
    return covered / retrieved if retrieved else 0.0


def chroma_iou(ranking: Ranking, k: int | None) -> float:
    """Gold characters retrieved / (length of the retrieved chunks, repeats counted + gold not retrieved)."""
    covered, _, retrieved, unused = _parts(ranking, k)
    return covered / (retrieved + unused)


def chroma_precision_omega(ranking: Ranking, k: int | None) -> float:
    """Gold characters retrieved / (size of the union of all chunks that touch a reference + gold outside them).

    The ranking must be that of the oracle, including chunks that only touch a reference.
    """
    covered, _, _, unused = _parts(ranking, None)
    chunks: dict[str, list[Interval]] = {}
    for passage in ranking.passages:
        chunks.setdefault(passage.doc, []).append((passage.start, passage.end))
    return covered / (sum(size(union(parts)) for parts in chunks.values()) + unused) if chunks else 0.0
