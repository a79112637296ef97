"""Latency of single queries. All other queries run in batches, which do not show the latency of one query."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

TIMED_QUERIES = 10
"""How many queries are timed one at a time: the first ones of a set."""


def milliseconds(work: Callable[[Any], object], inputs: Iterable[Any]) -> list[float]:
    """How long each call of `work` took, in milliseconds."""
    taken = []
    for value in inputs:
        begin = time.perf_counter()
        work(value)
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def percentiles(stage: str, ms: npt.NDArray[np.float64]) -> dict[str, float]:
    """`<stage>_p50_ms` and `<stage>_p95_ms` of timings in milliseconds, (calls,); empty if there are none."""
    return {f"{stage}_p{at}_ms": float(np.percentile(ms, at)) for at in (50, 95)} if len(ms) else {}
