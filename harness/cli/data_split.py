"""`harness data split`: set queries aside, once, for the final test."""

import argparse

from harness.cli.exit_codes import OK
from harness.cli.parser import number, whole_number
from harness.core.errors import ConfigError


def add_split_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data split`."""
    made.add_argument("dataset", help="a data set folder, or a name under datasets/")
    made.add_argument("--from", dest="source", metavar="SET", help="the query set to split (default: the only one)")
    made.add_argument("--test", type=number, default=0.3, metavar="FRACTION", help="for the locked test set (0.3)")
    made.add_argument(
        "--by",
        choices=("documents", "queries"),
        default="documents",
        help="keep queries about the same documents together, or not (documents)",
    )
    made.add_argument("--seed", type=whole_number, default=0, help="decides between equally good splits (0)")


def split(options: argparse.Namespace) -> int:
    """Split the query set and print what is where. Raises ConfigError or DataError if it cannot be split."""
    from harness.cli.arguments import dataset_folder
    from harness.core.plurals import plural
    from harness.data.manifest import read_manifest
    from harness.data.split import require_unsplit, write_split

    if not 0 < options.test < 1:
        raise ConfigError(f"--test {options.test:g}: expected a fraction between 0 and 1, such as 0.3")
    manifest = read_manifest(dataset_folder(options.dataset))
    require_unsplit(manifest)
    source = options.source
    if source is None:
        if len(manifest.queries) > 1:
            raise ConfigError(f"data split: name one of the sets with --from: {', '.join(manifest.queries)}")
        source = next(iter(manifest.queries), "validation")
    made = write_split(manifest, source, fraction=options.test, by=options.by, seed=options.seed)
    print(f"validation: {plural(len(made.validation), 'query')}")
    print(f"test: {plural(len(made.test), 'query')}, locked: only `harness run --final` opens it")
    for stratum, (left, right) in made.strata.items():
        print(f"  {stratum}: {left} and {right}")
    how = f"{plural(made.groups, 'group')} by document" if options.by == "documents" else "by query"
    print(f"split {how}, recorded in {manifest.root / 'manifest.yaml'}")
    return OK
