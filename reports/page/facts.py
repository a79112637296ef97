"""The data and the provenance of a launch: what is needed to assess and to reproduce its numbers."""

import json
import platform
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.core.environment import environment, package_versions
from harness.core.plurals import plural
from harness.data.profile import QueryProfile, query_profile
from harness.evaluation.results import resampling_seed
from harness.running.launch_result import Launch
from harness.running.locked_set import test_set_accesses
from reports.final import times


def data_facts(launch: Launch) -> Iterator[tuple[str, str]]:
    """Yields facts about the corpus, the queries, the evidence and the locked set, as term and description."""
    session = launch.session
    assert session is not None
    manifest, trial = session.manifest, session.trials[0]
    data = session.outputs(trial).data
    lengths = data.documents.lengths
    yield "data set", manifest.name
    if manifest.licence:
        yield "licence", manifest.licence
    if manifest.description:
        yield "description", manifest.description
    if manifest.source:
        yield "source", manifest.source
    spread = f"{np.median(lengths):,.0f} characters (median), {lengths.max():,} (max)"
    yield "documents", f"{len(lengths):,}; {lengths.sum():,} characters; {spread}"
    queries = data.query_set.queries
    answered = [query for query in queries if query.evidence]
    message = f"{len(queries):,} of '{trial.queries}'; {len(answered):,} with evidence"
    if session.synthetic:
        reviewed = f"{queries_of(launch).reviewed:,} of them reviewed by people"
        message = f"synthetic, written by a language model, {reviewed}: {message}"
    if len(answered) < len(queries):
        message += f", {len(queries) - len(answered):,} without an answer in the corpus"
    yield "queries", message
    items = [item for query in answered for item in query.evidence]
    if items:
        kind = "documents" if items[0].whole else "spans"
        copies = sum(len(item.places) > 1 for item in items)
        absent = sum(item.absent for item in items)
        lacking = f"; {absent:,} in documents missing from the corpus, counted as missed" if absent else ""
        yield "evidence", f"{plural(len(items), 'item')} ({kind}); {copies:,} with several equivalent places{lacking}"
    yield from _kinds(queries_of(launch))
    yield "clusters", f"{len({query.cluster for query in answered}):,} documents with queries"
    locked = [name for name, pinned in manifest.queries.items() if pinned.locked]
    opened = test_set_accesses(session)
    if locked:
        by = f": {'; '.join(opened[-5:])}" if opened else ""
        yield "locked set", f"'{', '.join(locked)}', accessed {times(len(opened))} from this store{by}"
    else:
        yield "locked set", "none: there are no unused queries to test the chosen trial on"


def queries_of(launch: Launch) -> QueryProfile:
    """Returns the profile of the queries that a launch was evaluated on."""
    session = launch.session
    assert session is not None
    data = session.outputs(session.trials[0]).data
    return query_profile(data.query_set.name, data.query_set.queries, data.by_id)


def _kinds(profile: QueryProfile) -> Iterator[tuple[str, str]]:
    """Types of queries, and their numbers of evidence items."""
    if profile.types:
        yield "types", _counts(profile.types)
    yield "question words", _counts(profile.question_words)
    if profile.items_per_query:
        yield "evidence items per query", _counts(profile.items_per_query)
    if len(profile.grades) > 1:
        yield "grades", _counts({f"{grade:g}": count for grade, count in profile.grades.items()})


def _counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{key} × {count:,}" for key, count in list(counts.items())[:12])


def provenance(launch: Launch, metric: str) -> Iterator[tuple[str, str]]:
    """Yields versions, hashes and seeds of a launch, as term and description."""
    session = launch.session
    assert session is not None
    trial = session.trials[0]
    if launch.id:
        yield "launch", launch.id
    yield (
        "experiment",
        f"{launch.experiment.name}, {plural(len(session.trials), 'trial')}, from {launch.experiment.source}",
    )
    if environment().commit:
        yield "git commit of the working directory", environment().commit
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield "versions", ", ".join(f"{name} {found}" for name, found in package_versions().items())
    yield "corpus sha256", session.manifest.corpus.sha256
    yield f"queries '{trial.queries}' sha256", session.manifest.query_set(trial.queries).sha256
    yield "tokenizer", trial.tokenizer
    counted = f"found if at least {trial.coverage:.0%} of a place is covered; verbatim copies: {trial.copies}"
    counted += f"; relevant from grade {trial.relevant_from:g}" if trial.relevant_from else ""
    yield "evidence", counted + ("; queries without evidence count as 0" if trial.unanswerable == "zero" else "")
    seed = resampling_seed(launch.results[0].queries, metric)
    yield f"resampling seed for {metric}", f"{seed}, derived from the query ids and the metric"


def experiment_text(launch: Launch) -> str:
    """Returns the text of the experiment file, or the trials as JSON if there is no file."""
    path = launch.experiment.base_dir / launch.experiment.source
    if launch.experiment.source.endswith((".yaml", ".yml")) and path.is_file():
        return path.read_text(encoding="utf-8")
    return trials_text(launch)


def trials_text(launch: Launch) -> str:
    """Returns the settings of each trial and the fingerprint of its results, as JSON."""
    record = {
        result.name: {"fingerprint": result.fingerprint, "settings": dict(result.settings)} for result in launch.results
    }
    return json.dumps(record, indent=1, ensure_ascii=False)
