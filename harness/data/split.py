"""Splitting a query set, once, into one for choosing between trials and a locked one for the final score."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.core.errors import ConfigError, DataError
from harness.core.plurals import plural
from harness.data.manifest import MANIFEST, Manifest, PinnedFile, require_plain, write_manifest
from harness.data.raw_records import RawQuery
from harness.data.record_files import read_queries, verify
from harness.evaluation.stats import TESTABLE_CLUSTERS

By = Literal["documents", "queries"]
VALIDATION, TEST = "validation", "test"

_EXCHANGED = 200
"""The most groups of which pairs are exchanged; with more, moving single groups is enough."""


@dataclass(frozen=True)
class Split:
    """The ids of the queries of both sets, and in both the number of groups and of queries per stratum."""

    validation: Sequence[str]
    test: Sequence[str]
    groups: tuple[int, int]
    strata: Mapping[str, tuple[int, int]]


def split_queries(queries: Sequence[RawQuery], *, fraction: float, by: By = "documents", seed: int = 0) -> Split:
    """Split queries so that about `fraction` of them, and of each stratum, are in the test set.

    Queries that share a document of evidence or a `group` stay together, unless `by` is "queries". The strata are the
    values of the metadata `type`, or if there are none the numbers of items of evidence. The largest groups are placed
    first, each where it brings the sets closer to the wanted numbers; then groups are moved and exchanged as long as
    that brings them closer still. Ties follow from `seed` and the ids.

    Raises DataError if the groups are too few or too large: if less than half or more than twice of the wanted fraction
    would be in the test set.
    """
    strata = _strata(queries)
    wanted = {stratum: fraction * count for stratum, count in Counter(strata.values()).items()}
    groups = sorted(_groups(queries, by), key=lambda ids: (-len(ids), _order(ids, seed)))
    inside = _chosen([Counter(strata[name] for name in ids) for ids in groups], wanted)
    test = {name for ids, chosen in zip(groups, inside, strict=True) for name in ids if chosen}
    share = len(test) / len(queries)
    if not fraction / 2 <= share <= min(2 * fraction, 0.999):
        largest = plural(len(groups[0]), "query")
        message = (
            f"{plural(len(groups), 'group')} by document, the largest of {largest}, cannot be split at {fraction:g}"
        )
        raise DataError(f"{message}; add queries about other documents, or split --by queries")
    sides = [[query.id for query in queries if (query.id in test) is side] for side in (False, True)]
    sizes = [Counter(strata[name] for name in names) for names in sides]
    counts = {stratum: (sizes[0][stratum], sizes[1][stratum]) for stratum in wanted}
    return Split(sides[0], sides[1], (inside.count(False), inside.count(True)), counts)


def _chosen(groups: Sequence[Counter[str]], wanted: Mapping[str, float]) -> list[bool]:
    """Which groups, given by their numbers of queries per stratum, belong to the test set."""
    inside = [False] * len(groups)
    total: Counter[str] = Counter()

    def after(*moved: int) -> Counter[str]:
        made = Counter(total)
        for at in moved:
            made.subtract(groups[at]) if inside[at] else made.update(groups[at])
        return made

    def move(*moved: int) -> bool:
        nonlocal total
        if _distance(after(*moved), wanted) >= _distance(total, wanted) - 1e-9:
            return False
        total = after(*moved)
        for at in moved:
            inside[at] = not inside[at]
        return True

    for at in range(len(groups)):
        move(at)
    pairs = list(itertools.combinations(range(min(len(groups), _EXCHANGED)), 2))
    # Every move brings the sets closer, so this ends.
    while sum(move(at) for at in range(len(groups))) or sum(move(*pair) for pair in pairs if _apart(inside, pair)):
        pass
    return inside


def _apart(inside: Sequence[bool], pair: tuple[int, int]) -> bool:
    return inside[pair[0]] is not inside[pair[1]]


def _order(ids: Sequence[str], seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{min(ids)}".encode()).hexdigest()


def _distance(counts: Mapping[str, int], wanted: Mapping[str, float]) -> float:
    """The distance from the wanted numbers, of each stratum and of all queries: sum of (count - wanted)^2 / wanted."""
    total = sum(wanted.values())
    apart = sum((counts.get(stratum, 0) - number) ** 2 / number for stratum, number in wanted.items())
    return (sum(counts.values()) - total) ** 2 / total + apart


def _strata(queries: Sequence[RawQuery]) -> dict[str, str]:
    if any(query.metadata.get("type") for query in queries):
        return {query.id: str(query.metadata.get("type") or "no type") for query in queries}
    words = {0: "without evidence", 1: "one item of evidence"}
    return {query.id: words.get(len(query.evidence), "several items of evidence") for query in queries}


def _groups(queries: Sequence[RawQuery], by: By) -> list[list[str]]:
    """The ids of queries that are connected by documents of evidence or groups, directly or through others."""
    if by == "queries":
        return [[query.id] for query in queries]
    parents: dict[tuple[str, str], tuple[str, str]] = {}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        parents.setdefault(key, key)
        while parents[key] != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    for query in queries:
        for key in _keys(query):
            parents[root(key)] = root(("query", query.id))
    found: dict[tuple[str, str], list[str]] = {}
    for query in queries:
        found.setdefault(root(("query", query.id)), []).append(query.id)
    return list(found.values())


def _keys(query: RawQuery) -> Iterable[tuple[str, str]]:
    yield from (("document", place.doc) for item in query.evidence for place in item.places)
    if query.metadata.get("group"):
        yield "group", str(query.metadata["group"])


def require_unsplit(manifest: Manifest) -> None:
    """Raise ConfigError if the data set has a locked set, or was split before."""
    locked = next((name for name, file in manifest.queries.items() if file.locked), None)
    if manifest.split or locked:
        message = f"has a locked set '{locked or TEST}' already; queries are split only once"
        raise ConfigError(f"{manifest.root / MANIFEST}: {message}")


def write_split(manifest: Manifest, source: str, *, fraction: float, by: By = "documents", seed: int = 0) -> Split:
    """Split the query set `source` of a data set into `validation` and the locked set `test`, and record it.

    The lines stay as they are. Raises ConfigError if the data set has a locked set or was split before, DataError if a
    file is not the pinned one, the queries cannot be split, or one set would be too small for any verdict although
    there are enough groups for both; nothing has changed then.
    """
    pinned = _splittable(manifest, source)
    made = split_queries(read_queries(pinned), fraction=fraction, by=by, seed=seed)
    if min(made.groups) < TESTABLE_CLUSTERS <= sum(made.groups) / 2:
        name, count = (TEST, made.groups[1]) if made.groups[1] < made.groups[0] else (VALIDATION, made.groups[0])
        message = f"'{name}' would have {plural(count, 'group')} by document of {sum(made.groups)}"
        message += f", and on fewer than {TESTABLE_CLUSTERS} no difference can be shown"
        raise DataError(f"{pinned.path}: {message}; queries are split only once: --test 0.5 makes the sets equal")
    folder = pinned.path.parent
    files = {VALIDATION: folder / f"{VALIDATION}.jsonl", TEST: folder / f"{TEST}.jsonl"}
    lines = _lines(pinned)
    others = {name: file for name, file in manifest.queries.items() if name != source}
    parts = {VALIDATION: made.validation, TEST: made.test}
    content = {files[name]: b"".join(lines[query] for query in ids) for name, ids in parts.items()}
    sets = {name: PinnedFile(path, "", name == TEST, pinned.synthetic) for name, path in files.items()}
    record = {
        "from": source,
        "sha256": pinned.sha256 or hashlib.sha256(b"".join(lines.values())).hexdigest(),
        "test": fraction,
        "by": by,
        "seed": seed,
    }
    _replace(replace(manifest, queries={**sets, **others}, split=record), content, pinned.path)
    return made


def _splittable(manifest: Manifest, source: str) -> PinnedFile:
    """The file of a set that can be split. Raises ConfigError or DataError if it cannot."""
    require_unsplit(manifest)
    path, pinned = manifest.root / MANIFEST, manifest.query_set(source)
    for name in {VALIDATION, TEST} - {source}:
        if name in manifest.queries or (pinned.path.parent / f"{name}.jsonl").exists():
            raise ConfigError(
                f"{path}: has a set '{name}' already; rename it first, as the split makes a set of that name"
            )
    require_plain(pinned)
    for file in (manifest.corpus, *manifest.queries.values(), *manifest.runs.values()):
        verify(file)
    return pinned


def _lines(pinned: PinnedFile) -> dict[str, bytes]:
    """The lines of a query file by query id, each with a line end."""
    content = [line for line in pinned.path.read_bytes().splitlines(keepends=True) if line.strip()]
    ended = (line if line.endswith(b"\n") else line + b"\n" for line in content)
    return {query.id: line for query, line in zip(read_queries(pinned), ended, strict=True)}


def _replace(manifest: Manifest, content: Mapping[Path, bytes], source: Path) -> None:
    """Write the files and the manifest. If that fails, the files are as before."""
    before = source.read_bytes()
    try:
        for path, text in content.items():
            temporary = path.with_name(f".{path.name}.draft")
            temporary.write_bytes(text)
            temporary.replace(path)
        write_manifest(manifest)
    except BaseException as error:
        for path in content:
            path.unlink(missing_ok=True)
        source.write_bytes(before)
        if isinstance(error, OSError):
            raise DataError(f"{source}: cannot be written: {error.strerror or error}") from None
        raise
    if source not in content:
        source.unlink()
