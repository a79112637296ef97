"""`harness data`: import, check and pin data sets."""

import argparse
from pathlib import Path
from typing import Any

from harness.cli.codes import INVALID, OK


def add_data_commands(commands: Any) -> None:
    """Add `data` with its own commands."""
    data = commands.add_parser("data", help="import, check and pin data sets").add_subparsers(
        required=True, metavar="COMMAND"
    )
    imported = data.add_parser("import", help="convert a data set into a folder the harness reads")
    imported.set_defaults(command=_import)
    imported.add_argument("kind", choices=("beir", "chroma"), help="the format")
    imported.add_argument("source", type=Path, help="the folder to read")
    imported.add_argument("target", type=Path, help="the folder to make, such as datasets/scifact")
    imported.add_argument("--licence", default="", help="the licence, for the manifest")
    checked = data.add_parser("check", help="find what is wrong with a data set; exit code 1 where there is an error")
    checked.set_defaults(command=_check)
    checked.add_argument("dataset", help="a data set folder, or a name under datasets/")
    checked.add_argument("--json", action="store_true", help="print JSON lines")
    pinned = data.add_parser("pin", help="accept the files of a data set as they are now")
    pinned.set_defaults(command=_pin)
    pinned.add_argument("dataset", help="a data set folder, or a name under datasets/")


def _import(options: argparse.Namespace) -> int:
    from harness.dataset import import_dataset

    target: Path = options.target
    counts = import_dataset(options.kind, options.source, target, name=target.name, licence=options.licence)
    print(f"{target}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    return OK


def _check(options: argparse.Namespace) -> int:
    import json

    from harness.dataset import check_dataset

    errors = warnings = 0
    for finding in check_dataset(_dataset(options.dataset)):
        errors, warnings = errors + (finding.level == "error"), warnings + (finding.level == "warning")
        print(
            json.dumps(finding._asdict())
            if options.json
            else f"{finding.level}: {finding.where}: {finding.what} [{finding.code}]"
        )
    if not options.json:
        print(f"{errors} errors, {warnings} warnings")
    return INVALID if errors else OK


def _pin(options: argparse.Namespace) -> int:
    from harness.dataset import read_manifest
    from harness.dataset.manifest import write_manifest

    root = _dataset(options.dataset)
    write_manifest(read_manifest(root))
    print(f"{root / 'manifest.yaml'}: hashes renewed")
    return OK


def _dataset(name: str) -> Path:
    from harness.dataset import find_dataset

    folder = Path(name)
    return folder if (folder / "manifest.yaml").is_file() else find_dataset(name, Path.cwd())
