"""`import_dataset`: runs a complete import; the target folder appears only if all of it succeeds."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import ConfigError
from harness.core.progress import progress
from harness.core.text_files import byte_lines
from harness.data.importers.beir import import_beir
from harness.data.importers.chroma import import_chroma
from harness.data.importers.clapnq import import_clapnq
from harness.data.importers.contract_nli import import_contract_nli
from harness.data.importers.dataset_writer import DatasetWriter, Imported
from harness.data.importers.documents_of import import_text
from harness.data.importers.exports import import_langsmith, import_phoenix
from harness.data.importers.hotpotqa import import_hotpotqa
from harness.data.importers.huggingface import import_huggingface, located
from harness.data.importers.ir_datasets import import_ir_datasets
from harness.data.importers.musique import import_musique
from harness.data.importers.nested_chunks import import_nested_chunks
from harness.data.importers.options import Options
from harness.data.importers.questions import import_questions
from harness.data.importers.source import Source
from harness.data.importers.squad import import_squad
from harness.data.importers.trec import import_trec
from harness.data.importers.user_tables import import_csv, import_jsonl
from harness.data.importers.wice import import_wice
from harness.data.manifest import Manifest, PinnedFile, sha256_of, write_manifest
from harness.data.runs import has_passages, run_queries
from harness.storage.files import appearing


class Format(NamedTuple):
    """The function that reads a format, and the fields of `Options` that it uses.

    `published` formats are those of public benchmarks, whose figures are measured on the set `test`: it stays open.
    """

    read: Callable[[Source, DatasetWriter, Options], None]
    uses: tuple[str, ...]
    published: bool = False
    needs_queries: bool = True
    remote: bool = False


_FILES = ("encoding", "exclude")
_TABLES = ("corpus", "queries", "columns", "name", "ignore_self", "absent", "titles", *_FILES)
_TREC = ("corpus", "queries", "qrels", "runs", "topic", "encoding", "name", "ignore_self", "titles")

FORMATS = {
    "text": Format(import_text, _FILES, needs_queries=False),
    "questions": Format(import_questions, ("corpus", "columns", "name", *_FILES)),
    "csv": Format(import_csv, _TABLES),
    "jsonl": Format(import_jsonl, _TABLES),
    "langsmith": Format(import_langsmith, ("corpus", "queries", "columns", "name", *_FILES)),
    "phoenix": Format(import_phoenix, ("corpus", "queries", "columns", "name", *_FILES)),
    "nested-chunks": Format(import_nested_chunks, ("corpus", "queries", "columns", "name")),
    "beir": Format(import_beir, ("runs", "ignore_self", "titles"), published=True),
    "trec": Format(import_trec, _TREC, published=True),
    "ir-datasets": Format(import_ir_datasets, ("name", "ignore_self", "titles"), published=True, remote=True),
    "huggingface": Format(import_huggingface, (*_TABLES[:-2], "unit"), published=True),
    "squad": Format(import_squad, ("name", "unit"), published=True),
    "hotpotqa": Format(import_hotpotqa, ("name", "queries"), published=True),
    "musique": Format(import_musique, ("name",), published=True),
    "clap-nq": Format(import_clapnq, ("name",), published=True),
    "chroma": Format(import_chroma, ("name", "encoding"), published=True),
    "contract-nli": Format(import_contract_nli, ("name",), published=True),
    "wice": Format(import_wice, (), published=True),
}


_LISTED = 20
"""The most files that a manifest lists one by one."""


def import_dataset(
    kind: str,
    source: Path | str,
    target: Path,
    *,
    licence: str = "",
    origin: str = "",
    options: Options | None = None,
) -> Imported:
    """Convert `source` into the data set folder `target`, all or nothing; returns the counts of imported items.

    `source` is a folder or file, or for huggingface also the name of a data set on the Hub; `origin` is recorded in the
    manifest as the source. Raises DataError with file and line, ConfigError for an option that the format does not use.
    """
    options = options or Options()
    chosen = FORMATS[kind]
    unused = options.unused_options((*chosen.uses, "test_set"))
    if unused:
        raise ConfigError(f"import {kind} does not use {unused}")
    name = target.resolve().name
    with appearing(target) as root:
        path = located(source) if kind == "huggingface" else Path(source)
        with progress(f"import {name}", _size(path), unit="bytes") as advance:
            read = Source(path, options.encoding, advance, remote=chosen.remote)
            writer = DatasetWriter(root, ignore_self=options.ignore_self, titles=options.titles)
            try:
                chosen.read(read, writer, options)
                writer.close(path, needs_queries=chosen.needs_queries)
            except BaseException:
                writer.abandon()
                raise
        runs = _copied_runs(options.runs, read, root)
        locks = not chosen.published if options.test_set is None else options.test_set == "locked"
        manifest = Manifest(
            root,
            name,
            PinnedFile(root / "corpus.jsonl", ""),
            _query_sets(root, locks=locks),
            f"Imported from {kind} format",
            licence,
            origin or (str(source) if chosen.remote or kind == "huggingface" else Path(source).resolve().name),
            runs,
            {"format": kind, "files": _hashes(read.used), "counts": dict(writer.counts)},
            # Documents were judged individually, so an unjudged copy is not evidence, as in trec_eval.
            "ignore" if kind in ("beir", "trec", "ir-datasets") else "credit",
        )
        write_manifest(manifest)
    return writer.counts


def _query_sets(root: Path, *, locks: bool) -> dict[str, PinnedFile]:
    """The query sets; if it `locks` and there are several, the one named `test` is locked."""
    paths = sorted((root / "queries").glob("*.jsonl"))
    locks = locks and len(paths) > 1
    return {path.stem: PinnedFile(path, "", locked=path.stem == "test" and locks) for path in paths}


def _hashes(used: Mapping[str, Path]) -> dict[str, str]:
    """The sha256 of each file, or of many files that of their names and hashes."""
    hashes = {file: sha256_of(path) for file, path in used.items()}
    if len(hashes) <= _LISTED:
        return hashes
    listing = "".join(f"{file}\0{sha256}\n" for file, sha256 in sorted(hashes.items()))
    return {f"{len(hashes)} files": hashlib.sha256(listing.encode()).hexdigest()}


def _copied_runs(runs: Mapping[str, str], source: Source, root: Path) -> dict[str, PinnedFile]:
    """Copy the runs, unpacked, into the data set. Raises DataError if one is malformed."""
    made: dict[str, PinnedFile] = {}
    for name, file in runs.items():
        path = source.used_file(source.file(file))
        run_queries(path)
        (root / "runs").mkdir(exist_ok=True)
        made[name] = PinnedFile(root / "runs" / (f"{name}.jsonl" if has_passages(path) else f"{name}.txt"), "")
        made[name].path.write_bytes(b"".join(content for _, content in byte_lines(path)))
    return made


def _size(path: Path) -> int:
    """The size in bytes of a file, or of all files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
