"""`harness data show`: the statistics of a data set, as tables or as JSON."""

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.cli.exit_codes import OK
from harness.cli.output import show as show_table

if TYPE_CHECKING:
    from rich.table import Table

    from harness.data.manifest import Manifest
    from harness.data.profile import CorpusProfile, QueryProfile, Spread

_BARS = " ▁▂▃▄▅▆▇█"


def add_show_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `harness data show`."""
    parser.add_argument("dataset", help="a data set folder, or a name under datasets/")
    parser.add_argument("--queries", metavar="SET", help="one query set (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def show(options: argparse.Namespace) -> int:
    """Print the statistics of a data set; exit code 0."""
    from harness.cli.arguments import dataset_folder
    from harness.data.dataset import read_query_set
    from harness.data.manifest import read_manifest
    from harness.data.open_corpus import open_corpus
    from harness.data.profile import corpus_profile, query_profile

    manifest = read_manifest(dataset_folder(options.dataset))
    names = [options.queries] if options.queries else list(manifest.queries)
    profiles = []
    with open_corpus(manifest) as documents:
        for name in names:
            pinned = manifest.query_set(name)
            # Statistics of a locked set reveal nothing about which trial is better on it.
            queries = read_query_set(manifest, name, documents)
            flags = {"locked": pinned.locked, "synthetic": pinned.synthetic}
            profiles.append(query_profile(name, queries, documents.by_id, **flags))
        corpus = corpus_profile(documents)
    if options.json:
        record = {"name": manifest.name, "corpus": _plain(corpus), "queries": [_plain(one) for one in profiles]}
        print(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        _print(manifest, corpus, profiles)
    return OK


def _plain(profile: Any) -> dict[str, Any]:
    """A profile as JSON values: NaN, which JSON lacks, becomes null."""
    text = dataclasses.asdict(profile)

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): clean(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [clean(inner) for inner in value]
        return None if value != value else value

    return {key: clean(value) for key, value in text.items()}


def _print(manifest: "Manifest", corpus: "CorpusProfile", profiles: Sequence["QueryProfile"]) -> None:
    print(manifest.name)
    for what in ("description", "licence", "source"):
        if value := getattr(manifest, what):
            print(f"{what}: {value}")
    show_table(_lengths(_measures(corpus, profiles)))
    for profile in profiles:
        for line in _facts(profile):
            print(line)


def _measures(corpus: "CorpusProfile", profiles: Sequence["QueryProfile"]) -> Iterator[tuple[str, "Spread"]]:
    yield "words of a document", corpus.words
    yield "characters of a document", corpus.characters
    for profile in profiles:
        yield f"words of a query, {profile.name}", profile.words
        if profile.lengths.count:
            yield f"characters of evidence, {profile.name}", profile.lengths


def _lengths(measures: Iterator[tuple[str, "Spread"]]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("lengths", no_wrap=True)
    for name in ("count", "min", "25 %", "median", "75 %", "90 %", "max", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("distribution (log)", no_wrap=True)
    for name, spread in measures:
        marks = (spread.min, spread.lower, spread.median, spread.upper, spread.p90, spread.max, spread.total)
        table.add_row(name, f"{spread.count:,}", *(f"{mark:,.0f}" for mark in marks), bars(spread.counts))
    return table


def _facts(profile: "QueryProfile") -> Iterator[str]:
    reviewed = f"synthetic, {profile.reviewed:,} reviewed"
    marks = [word for word, is_so in (("locked", profile.locked), (reviewed, profile.synthetic)) if is_so]
    kinds = ((profile.whole, "whole documents"), (profile.items - profile.whole, "spans"))
    kind = ", ".join(f"{count:,} {name}" for count, name in kinds if count) or "none"
    name = f"{profile.name} ({', '.join(marks)})" if marks else profile.name
    without = profile.queries - profile.answerable
    yield f"{name}: {profile.queries:,} queries, {profile.answerable:,} with evidence, {without:,} without"
    absent = f", {profile.absent:,} of them not in the corpus" if profile.absent else ""
    yield f"  evidence: {profile.items:,} items ({kind or 'none'}) in {profile.documents:,} documents{absent}"
    if profile.items_per_query:
        yield f"  items per query: {_counts(profile.items_per_query)}"
    if len(profile.grades) > 1:
        yield f"  grades: {_counts({f'{grade:g}': count for grade, count in profile.grades.items()})}"
    if profile.positions:
        message = ", ".join(map(str, profile.positions))
        yield f"  position in the document, by tenths: {bars(profile.positions)}  ({message})"
    if profile.types:
        yield f"  types: {_counts(profile.types)}"
    yield f"  question words: {_counts(profile.question_words)}"


def _counts(counts: Mapping[Any, int]) -> str:
    """Counts as `key × count`, the first twelve."""
    lines = [f"{key} × {count:,}" for key, count in list(counts.items())[:12]]
    return ", ".join(lines) + (f", and {len(counts) - 12} more" if len(counts) > 12 else "")


def bars(counts: Sequence[int]) -> str:
    """Counts as a row of bars, scaled to the largest; only a count of 0 is blank.

    >>> bars([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(counts, default=0)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] if most else " " for count in counts)
