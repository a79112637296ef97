"""Whether a data set is large enough for what it is to tell."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from harness.core.records import Document
from harness.data.checks.findings import Finding
from harness.data.checks.words import words
from harness.data.raw_records import RawQuery
from harness.evaluation.stats import queries_needed

SHORT = 150
"""Words, about 200 tokens, below which the usual chunkers leave a document whole."""
EFFECT = 0.05
"""The difference of a mean that is sought where nothing is said."""
FEWEST_DOCUMENTS = 6
"""Documents that queries must be about for a difference to be told: of five, 2 in 2^5 = 6 % of all sign flips are as
extreme as any."""
SPREAD = 0.4
"""The standard deviation of a query's difference between two trials that is reckoned with before anything has run: in
between what was seen of recall at a token budget, 0.3 for like trials and 0.55 for unlike ones (docs/data.md)."""


def short_documents(path: Path, documents: Sequence[Document]) -> Iterator[Finding]:
    """A finding where most documents are short."""
    lengths = np.array([len(words(doc.text)) for doc in documents])
    short = int((lengths < SHORT).sum())
    if documents and 2 * short > len(documents):
        message = (
            f"{short:,} of {len(documents):,} documents hold fewer than {SHORT} words (median {np.median(lengths):.0f})"
        )
        yield Finding("short-documents", str(path), f"{message}: chunkers of 200 tokens and more leave them whole")


def few_queries(path: Path, queries: Sequence[RawQuery], effect: float) -> Iterator[Finding]:
    """Findings where the queries with evidence, or the documents they are about, are too few."""
    answerable = [query for query in queries if query.evidence]
    if not answerable:
        return
    needed = needed_for(effect)
    if len(answerable) < needed:
        message = f"{len(answerable):,} queries with evidence; to see a difference of {effect:g} takes about {needed:,}"
        yield Finding("few-queries", str(path), f"{message} (80 % power, differences varying by {SPREAD:g})")
    groups = {str(query.metadata.get("group") or query.evidence[0].places[0].doc) for query in answerable}
    if len(groups) < FEWEST_DOCUMENTS:
        message = f"the queries make {len(groups)} clusters, by group or first document of evidence"
        message += f"; fewer than {FEWEST_DOCUMENTS} tell nothing about others"
        yield Finding("few-clusters", str(path), f"{message}; see `compare: {{clusters: queries}}`")


def needed_for(effect: float) -> int:
    """Queries needed to see a mean difference of `effect` with 80 % power at 5 %, before anything has run."""
    return int(queries_needed(np.array([SPREAD]), 1, effect, critical=1.96)[0])
