"""The runs of other systems that are kept with a data set: TREC runs, and passages as JSON lines."""

import shutil
from dataclasses import replace
from pathlib import Path

from harness.components.retrievers.passage_run import read_passages
from harness.components.retrievers.trec_run import read_run
from harness.core.errors import DataError
from harness.core.text_files import bare_name
from harness.data.manifest import Manifest, PinnedFile, read_manifest, write_manifest
from harness.data.record_files import read_queries, verify
from harness.data.write import checked_name


def run_queries(path: Path) -> set[str]:
    """Return the ids of the queries of a run: of passages if it is JSON lines, else of TREC.

    Raises DataError at the first malformed line.
    """
    return set(read_passages(path) if has_passages(path) else read_run(path))


def has_passages(path: Path) -> bool:
    """Whether a run has passages, by its name: compressed or not, it is a file of JSON lines."""
    return bare_name(path).endswith((".jsonl", ".ndjson", ".json"))


def add_run(root: Path, name: str, file: Path) -> Manifest:
    """Copy a run into a data set, pin it, and return the new manifest.

    Raises DataError if the run is malformed or has none of the data set's queries, if the data set has a run of that
    name, or if a file of it differs from the pinned one; nothing has changed then. Raises ConfigError for a name that
    cannot be that of a file.
    """
    manifest = read_manifest(root)
    checked_name(name)
    for pinned in (manifest.corpus, *manifest.queries.values(), *manifest.runs.values()):
        verify(pinned)  # writing the manifest updates all hashes
    ranked = run_queries(file)
    known = {query.id for pinned in manifest.queries.values() for query in read_queries(pinned)}
    if not ranked & known:
        raise DataError(f"{file}: has none of the queries of {root}, but such as '{next(iter(sorted(ranked)), '')}'")
    path = root / "runs" / (name + (".jsonl" if has_passages(file) else ".txt") + _compression(file))
    if name in manifest.runs or path.exists():
        raise DataError(f"{path}: the data set has a run '{name}' already; choose another name, with NAME=FILE")
    path.parent.mkdir(exist_ok=True)
    try:
        shutil.copyfile(file, path)
        made = replace(manifest, runs={**manifest.runs, name: PinnedFile(path, "")})
        write_manifest(made)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return read_manifest(root)


def _compression(file: Path) -> str:
    return "" if bare_name(file) == file.name else file.suffix
