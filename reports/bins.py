"""Relevance of hits by score bin, as text and as JSON."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from harness.core.json_text import plain
from harness.evaluation.results import ScoreBin, ScoreBins


def text(found: Sequence[ScoreBins]) -> str:
    """Returns a table per embedder as text, for the terminal."""
    parts = []
    for one in found:
        lines = [
            f"{one.embedder}: {one.queries} queries with evidence, {one.chunkings} chunkings",
            f"{'cosine':<14}{'hits':>8}{'relevant':>10}   fraction (95 % interval)",
        ]
        lines += [
            f"{label(one_bin):<14}{one_bin.hits:>8}{one_bin.relevant:>10}   {_fraction(one_bin)}"
            for one_bin in one.bins
        ]
        parts.append("\n".join(lines))
    note = "relevant: by the annotated evidence of the query set; unannotated passages count as irrelevant"
    return "\n\n".join([*parts, note])


def label(one_bin: ScoreBin) -> str:
    """Returns the range of a bin in words: `0.6 to 0.7`, `from 0.9`, `below 0.3`."""
    if math.isinf(one_bin.high):
        return f"from {one_bin.low:g}"
    return f"below {one_bin.high:g}" if math.isinf(one_bin.low) else f"{one_bin.low:g} to {one_bin.high:g}"


def _fraction(one_bin: ScoreBin) -> str:
    return f"{one_bin.rate:.3f} ({one_bin.rate_low:.3f} … {one_bin.rate_high:.3f})" if one_bin.hits else "–"


def as_json(found: Sequence[ScoreBins]) -> str:
    """Returns all bins as JSON; infinite bounds and fractions of empty bins are null."""
    value = [plain(asdict(one) | {"bins": one.bins}) for one in found]
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
