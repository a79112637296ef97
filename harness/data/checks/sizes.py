"""Whether a data set is large enough to detect differences between trials."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from harness.core.plurals import plural
from harness.core.records import Document
from harness.data.checks.findings import Finding
from harness.data.checks.words import words
from harness.data.raw_records import RawQuery
from harness.evaluation.stats import queries_needed

SHORT = 150
"""Words, about 200 tokens; the usual chunkers do not split shorter documents."""
EFFECT = 0.03
"""The difference of means to detect, if none is given."""
FEWEST_DOCUMENTS = 6
"""Minimum number of clusters for a significant difference: with five, at least 2 in 2^5 = 6 % of all sign flips are as
extreme as the observed one."""
SPREAD = 0.4
"""The standard deviation of per-query differences between two trials that is assumed before anything has run. It lies
between the values observed for recall at a token budget: 0.3 for similar trials, 0.55 for dissimilar ones
(docs/data.md)."""


def short_documents(path: Path, documents: Sequence[Document]) -> Iterator[Finding]:
    """A finding if more than half of the documents are short."""
    lengths = np.fromiter((len(words(doc.text)) for doc in documents), np.int64)
    short = int((lengths < SHORT).sum())
    if len(documents) and 2 * short > len(documents):
        message = (
            f"{short:,} of {len(documents):,} documents have fewer than {SHORT} words (median {np.median(lengths):.0f})"
        )
        yield Finding("short-documents", str(path), f"{message}: chunkers of 200 tokens or more do not split them")


def few_queries(path: Path, queries: Sequence[RawQuery], effect: float) -> Iterator[Finding]:
    """Findings if the queries with evidence, or the clusters they form, are too few to detect `effect`."""
    answerable = [query for query in queries if query.evidence]
    if not answerable:
        return
    needed = needed_for(effect)
    if len(answerable) < needed:
        have = plural(len(answerable), "query")
        message = f"{have} with evidence; detecting a difference of {effect:g} takes about {needed:,}"
        yield Finding("few-queries", str(path), f"{message} (80 % power, standard deviation of differences {SPREAD:g})")
    groups = {str(query.metadata.get("group") or query.evidence[0].places[0].doc) for query in answerable}
    if len(groups) < FEWEST_DOCUMENTS:
        message = f"the queries form {plural(len(groups), 'cluster')}, by group or first document of evidence"
        message += f"; results on fewer than {FEWEST_DOCUMENTS} do not generalize to others"
        yield Finding("few-clusters", str(path), f"{message}; see `compare: {{clusters: queries}}`")


def needed_for(effect: float) -> int:
    """Queries needed to detect a mean difference of `effect` with 80 % power at 5 %, assuming `SPREAD`."""
    return int(queries_needed(np.array([SPREAD]), 1, effect, critical=1.96)[0])
