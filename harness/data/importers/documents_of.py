"""The documents of an import: a folder of files, a table, or an existing data set."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from harness.core.columnar import SUFFIXES
from harness.core.errors import DataError
from harness.core.text_files import COMPRESSED, Line
from harness.data.documents import KINDS, extracted
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.options import Options
from harness.data.importers.source import Source
from harness.data.importers.tables import add_documents
from harness.data.manifest import MANIFEST, read_manifest
from harness.data.record_files import records, verify

_TABLES = (".csv", ".tsv", ".jsonl", ".json", *SUFFIXES, *COMPRESSED)


def import_text(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import the documents of a folder, or a single file; there are no queries yet. See `add_folder`."""
    add_folder(source, source.path, writer, options)


def add_corpus(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Add the documents that the option `corpus` names: a folder of files, a data set, or a table.

    The path is relative to the source or to the working folder. Raises DataError if there is no such file.
    """
    if not options.corpus:
        message = "contains questions only; name the documents with --corpus: a folder, a table, or a data set"
        raise DataError(f"{source.path}: {message}")
    path = next((p for p in (source.folder / options.corpus, Path(options.corpus)) if p.exists()), None)
    if path is None:
        raise DataError(f"--corpus {options.corpus}: no such file or folder")
    if (path / MANIFEST).is_file():
        corpus = read_manifest(path).corpus
        verify(corpus)
        source.used_file(corpus.path)
        add_documents(writer, {}, records(corpus.path))
    elif path.is_dir() or path.suffix not in _TABLES:
        add_folder(source, path, writer, options)
    else:
        add_documents(writer, options.columns, source.rows(path))


def add_folder(source: Source, folder: Path, writer: DatasetWriter, options: Options) -> None:
    """Add each file of a known kind as a document; its id is its path in the folder.

    Left out and counted are other kinds of files and files without text. Folders whose names begin with a dot or an
    underscore, and files that match a pattern of `exclude`, are not looked at. Raises DataError if a file cannot be
    read or none is of a known kind, ConfigError if a package for its kind is missing.
    """
    root = folder if folder.is_dir() else folder.parent
    others: Counter[str] = Counter()
    empty: list[str] = []
    found = 0
    for path in _files(folder, options.exclude):
        name = path.relative_to(root).as_posix()
        if path.suffix.lower() not in KINDS:
            others[path.suffix.lower() or path.name] += 1
            continue
        found += 1
        made = extracted(source.used_file(path), options.encoding)
        source.count(path)
        if made.text.strip():
            titles: Literal["contained", "separate"] = "contained" if made.title in made.text else "separate"
            writer.document(Line(path, 1), name, made.text, made.title, made.record(), titles=titles)
        else:
            empty.append(name)
    if not found:
        raise DataError(f"{folder}: contains no file of a known kind; known are {', '.join(KINDS)}")
    if others:
        kinds = ", ".join(kind for kind, _ in others.most_common(8))
        writer.counts.add(f"files of other kinds left out: {kinds}", others.total())
    if empty:
        writer.counts.add(f"files without text left out: {_shortened(empty)}", len(empty))


def _files(folder: Path, exclude: Sequence[str]) -> Iterator[Path]:
    """The files of a folder and its subfolders, sorted by path."""
    if folder.is_file():
        yield folder
        return
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        inside = path.relative_to(folder)
        hidden = any(part.startswith((".", "_")) for part in inside.parts[:-1]) or path.name.startswith(".")
        if path.is_file() and not hidden and not any(inside.match(pattern) for pattern in exclude):
            yield path


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
