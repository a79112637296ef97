"""Facts about a trial besides its scores: costs, sizes and latencies, each declared once with its unit."""

from typing import Literal, NamedTuple

Unit = Literal["bytes", "ms", "s", "usd", "count", "fraction"]


class Fact(NamedTuple):
    """A fact: its unit, its meaning, and whether the report's table of costs shows it."""

    unit: Unit
    meaning: str
    in_report: bool = True


FACTS: dict[str, Fact] = {
    "context_tokens": Fact("count", "mean number of tokens of a selection, contexts included"),
    "passages": Fact("count", "mean number of selected passages"),
    "redundancy": Fact("fraction", "mean fraction of the selected characters that occur in an earlier passage"),
    "latency_p50_ms": Fact("ms", "median time of a query: embedding, retrieval and selection"),
    "latency_p95_ms": Fact("ms", "95th percentile of the time of a query"),
    "chunks": Fact("count", "number of chunks of the corpus"),
    "index_bytes": Fact("bytes", "size of the index"),
    "usd_per_query": Fact("usd", "dollars per query, the reader's included"),
    "index_usd": Fact("usd", "dollars for embedding the corpus"),
    "queries_usd": Fact("usd", "dollars for embedding the queries"),
    "rerank_usd": Fact("usd", "dollars for reranking"),
    "empty_results": Fact("count", "number of queries with an empty selection"),
    "build_s": Fact("s", "time to build the index in a vector database", in_report=False),
    "ann_recall": Fact("fraction", "fraction of the exact nearest chunks that the index finds", in_report=False),
    "unmapped": Fact("fraction", "fraction of the passages of another system that are not in the corpus"),
    "unanswered": Fact("count", "number of queries that another system did not answer"),
    "error_rate": Fact("fraction", "fraction of the requests to another system that failed", in_report=False),
    "retrieve_p99_ms": Fact("ms", "99th percentile of the time that another system takes for a query", in_report=False),
    **{
        f"{stage}_p{at}_ms": Fact("ms", f"percentile {at} of the time of a query's {stage} stage", in_report=False)
        for stage in ("embed", "retrieve", "select")
        for at in (50, 95)
    },
}
"""Facts by name (`TrialResult.efficiency`), in the order of the report; those of steps are `step_<label>_<fact>`."""


def unit_of(name: str) -> Unit:
    """Return the unit of a fact; that of a selector step's fact follows from its name.

    >>> unit_of("chunks"), unit_of("step_dedup_usd")
    ('count', 'usd')
    """
    if name in FACTS:
        return FACTS[name].unit
    if not name.startswith("step_"):
        return "fraction"
    return "ms" if name.endswith("_ms") else "usd" if "usd" in name else "count"
