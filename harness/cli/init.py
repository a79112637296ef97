"""`harness init`: a new project, with documents of one's own, the sample data, or a small example."""

import argparse
import shutil
from pathlib import Path

from harness.cli.data_import import listed_counts
from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup
from harness.core.errors import ConfigError

_DATA = "workshop"
_SCHEMA = "experiment.schema.json"


def add_init_command(commands: CommandGroup) -> None:
    """Adds `harness init`."""
    summary = "create a new project: with your documents, with the sample data, or a small example"
    commands.add("init", _init, summary, _init_options)


def _init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the folder to create")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--docs",
        type=Path,
        metavar="FOLDER",
        help="documents to start with: Markdown, reStructuredText, HTML, text, PDF or Word, with subfolders",
    )
    what.add_argument("--sample", action="store_true", help="the sample data and the experiments of the documentation")
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="with --docs: files to leave out"
    )


def _init(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if options.exclude and not options.docs:
        raise ConfigError("init: --exclude requires --docs")
    _require_free(folder)
    if options.docs:
        for line in _documents(folder, options.docs, tuple(options.exclude)):
            print(line)
    else:
        for path in sorted(_copied("sample", folder)) if options.sample else scaffold(folder):
            print(path)
    print(f"next: cd {folder} && {_next_step(folder, options)}")
    return OK


def _next_step(folder: Path, options: argparse.Namespace) -> str:
    if options.docs:
        name = _project_name(folder)
        return f"harness data evidence {name} --to validation, to mark the evidence of some questions"
    return "harness run experiments/quickstart.yaml" if options.sample else "harness run experiment.yaml"


def _require_free(folder: Path) -> None:
    """Raises ConfigError if the folder already contains files."""
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"{folder}: already contains files; name a new folder")


def scaffold(folder: Path) -> list[Path]:
    """Creates the small example in a new or empty folder and returns its files. Raises ConfigError if it cannot."""
    made = _copied("workshop", folder)
    _pin(folder / "datasets" / _DATA)
    return sorted([*made, _write_schema(folder), folder / "datasets" / _DATA / "manifest.yaml"])


def _documents(folder: Path, docs: Path, exclude: tuple[str, ...]) -> list[str]:
    """Creates a project with documents; returns lines that say what was imported. Nothing is left if that fails."""
    from harness.data.importers import Options, import_dataset

    name = _project_name(folder)
    new = not folder.exists()
    try:
        counts = import_dataset("text", docs, folder / "datasets" / name, options=Options(exclude=exclude))
        _copied("documents", folder)
        file = folder / "experiment.yaml"
        file.write_text(file.read_text(encoding="utf-8").replace("PROJECT", name), encoding="utf-8")
        _write_schema(folder)
    except BaseException:
        shutil.rmtree(folder / "datasets", ignore_errors=True)
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return [*listed_counts(counts), str(folder / "datasets" / name), str(file), str(folder / "my_chunkers.py")]


def _project_name(folder: Path) -> str:
    """The name of the data set and the experiment of a new project."""
    from harness.storage.files import file_name

    return file_name(folder.resolve().name)


def _copied(template: str, folder: Path) -> list[Path]:
    """Copies a template into a folder and returns its files. Raises ConfigError if it cannot be written."""
    from importlib.resources import as_file, files

    try:
        with as_file(files("harness.cli").joinpath("scaffold", template)) as source:
            ignored = shutil.ignore_patterns("__pycache__", ".*", "*.html")
            shutil.copytree(source, folder, dirs_exist_ok=True, ignore=ignored, copy_function=_copy)
            return [path for path in folder.rglob("*") if path.is_file()]
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from None


def _copy(source: str, target: str) -> None:
    """Copies only the content: an installed package may be read-only, a project must be writable."""
    Path(target).write_bytes(Path(source).read_bytes())


def _write_schema(folder: Path) -> Path:
    """Writes the JSON Schema of experiment files, which editors find by the first line of `experiment.yaml`."""
    from harness.experiment.schema import schema_text

    path = folder / _SCHEMA
    path.write_text(schema_text(), encoding="utf-8")
    return path


def _pin(root: Path) -> None:
    from harness.data.manifest import Manifest, PinnedFile, write_manifest

    sets = {"validation": False, "test": True}
    write_manifest(
        Manifest(
            root,
            _DATA,
            PinnedFile(root / "corpus.jsonl", ""),
            {name: PinnedFile(root / "queries" / f"{name}.jsonl", "", locked) for name, locked in sets.items()},
            "The handbook of a bicycle workshop in six short parts, with sixteen questions: to try things out on.",
            "the harness's own",
            "written for the harness",
        )
    )
