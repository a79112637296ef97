"""`harness init`: a folder to begin with, with an experiment, a small data set and a component."""

import argparse
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from harness.cli.arguments import CommandGroup
from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError
from harness.data.manifest import Manifest, PinnedFile, write_manifest

_DATA = "workshop"


def add_init_command(commands: CommandGroup) -> None:
    commands.add(
        "init", _init, "write the beginning of a project: an experiment, a small data set, a component", _init_options
    )


def _init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the folder to make")


def _init(options: argparse.Namespace) -> int:
    for path in scaffold(options.folder):
        print(path)
    print(f"now: cd {options.folder} && harness run experiment.yaml")
    return OK


def scaffold(folder: Path) -> list[Path]:
    """Write the beginning of a project into a folder that is new or empty; gives the files.

    Raises ConfigError where the folder holds files already, or cannot be written.
    """
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"{folder}: holds files already; name a new folder")
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
    """The content alone: an installed package may be read-only, a project is not."""
    Path(target).write_bytes(Path(source).read_bytes())


def _pin(root: Path) -> None:
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
