"""`harness data`: import, check, repair, show and extend data sets."""

import argparse

from harness.cli.arguments import dataset_folder
from harness.cli.data_check import add_check_options, check
from harness.cli.data_evidence import add_evidence_options, evidence
from harness.cli.data_generate import add_generate_options, add_review_options, generate, review
from harness.cli.data_import import add_import_options, import_dataset_folder
from harness.cli.data_show import add_show_options, show
from harness.cli.data_split import add_split_options, split
from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup


def add_data_commands(commands: CommandGroup) -> None:
    """Add the command group `data` with its commands."""
    data = commands.add_group("data", "import, check, show, extend and pin data sets")
    data.add("import", import_dataset_folder, "convert a data set into a folder the harness reads", add_import_options)
    data.add(
        "check",
        check,
        "check a data set for errors and doubtful data; exit code 1 if there are errors",
        add_check_options,
    )
    data.add(
        "show",
        show,
        "show statistics of a data set: counts, lengths, positions of evidence, types of queries",
        add_show_options,
    )
    data.add(
        "evidence",
        evidence,
        "search the corpus, mark evidence, and get the line for the query file",
        add_evidence_options,
    )
    data.add("split", split, "set queries aside, once, in a locked set for the final test", add_split_options)
    data.add("generate", generate, "generate queries with evidence using a language model", add_generate_options)
    data.add("review", review, "apply the verdicts of a review sheet to generated queries", add_review_options)
    data.add("pin", _pin, "accept the current files of a data set: update the hashes in its manifest", _pin_options)


def _pin_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a data set folder, or a name under datasets/")


def _pin(options: argparse.Namespace) -> int:
    from harness.data.manifest import read_manifest, write_manifest
    from harness.data.remote_files import fetch

    root = dataset_folder(options.dataset)
    manifest = read_manifest(root)
    for file in (manifest.corpus, *manifest.queries.values(), *manifest.runs.values()):
        if file.url:
            fetch(file.url, file.path)
    write_manifest(manifest)
    print(f"{root / 'manifest.yaml'}: hashes updated")
    return OK
