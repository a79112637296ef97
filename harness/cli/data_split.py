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
    from harness.evaluation.stats import TESTABLE_CLUSTERS

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
    sizes = [plural(len(ids), "query") for ids in (made.validation, made.test)]
    if options.by == "documents":
        sizes = [
            f"{size} in {plural(groups, 'group')} by document" for size, groups in zip(sizes, made.groups, strict=True)
        ]
    print(f"validation: {sizes[0]}")
    print(f"test: {sizes[1]}, locked: only `harness run --final` opens it")
    for stratum, (left, right) in made.strata.items():
        print(f"  {stratum}: {left} and {right}")
    for name, count in zip(("validation", "test"), made.groups, strict=True):
        if count < TESTABLE_CLUSTERS:
            message = f"note: on '{name}' no difference can be shown: at least {TESTABLE_CLUSTERS} groups are needed"
            print(f"{message}; add queries about other documents, and pin them with `harness data pin`")
    print(f"split by {options.by}, recorded in {manifest.root / 'manifest.yaml'}")
    return OK
