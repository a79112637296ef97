"""`harness init`: a new project with an experiment, a small data set and a custom component."""

import argparse
import shutil
from pathlib import Path

from harness.cli.arguments import CommandGroup
from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError

_DATA = "workshop"


def add_init_command(commands: CommandGroup) -> None:
    """Adds `harness init`."""
    summary = "create a new project with an experiment, a small data set and a custom component"
    commands.add("init", _init, summary, _init_options)


def _init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the folder to create")


def _init(options: argparse.Namespace) -> int:
    for path in scaffold(options.folder):
        print(path)
    print(f"next: cd {options.folder} && harness run experiment.yaml")
    return OK


def scaffold(folder: Path) -> list[Path]:
    """Creates a project in a new or empty folder and returns its files.

    Raises ConfigError if the folder already contains files, or cannot be written.
    """
    from importlib.resources import as_file, files

    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"{folder}: already contains files; name a new folder")
    try:
        with as_file(files("harness.cli").joinpath("scaffold")) as source:
            shutil.copytree(
                source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"), copy_function=_copy
            )
        _pin(folder / "datasets" / _DATA)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from None
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _copy(source: str, target: str) -> None:
    """Copies only the content: an installed package may be read-only, a project must be writable."""
    Path(target).write_bytes(Path(source).read_bytes())


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
