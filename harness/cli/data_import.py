"""`harness data import`: convert a data set of another format into a folder the harness reads."""

import argparse
from pathlib import Path

from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError


def add_import_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data import`."""
    from harness.data.importers import FORMATS
    from harness.data.importers.options import COLUMNS

    made.add_argument("kind", choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    made.add_argument("source", help="the folder or file to read; for huggingface also a name on the Hub")
    made.add_argument("target", type=Path, help="the folder to create, such as datasets/scifact")
    made.add_argument("--licence", default="", help="the licence, recorded in the manifest")
    made.add_argument("--origin", default="", metavar="TEXT", help="where the data come from, recorded in the manifest")
    made.add_argument("--corpus", metavar="FILE", help="the documents, if they are not found by name")
    named = "prefix the name of the set if there are several"
    made.add_argument("--queries", action="append", default=[], metavar="[SET=]FILE", help=f"the queries; {named}")
    made.add_argument("--qrels", action="append", default=[], metavar="[SET=]FILE", help=f"the judgments; {named}")
    made.add_argument(
        "--run", action="append", default=[], metavar="[NAME=]FILE", help="a TREC run to keep with the data"
    )
    made.add_argument("--set", default="validation", metavar="NAME", help="the name of the query set (validation)")
    made.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="PART=COLUMN",
        help="the column that holds a part, such as query.text=question; parts: " + ", ".join(COLUMNS),
    )
    made.add_argument(
        "--topic",
        choices=("title", "desc", "narr"),
        default="title",
        help="the field of a TREC topic that is the query (title)",
    )
    made.add_argument(
        "--unit", choices=("article", "paragraph"), default="article", help="what becomes a document in SQuAD (article)"
    )
    made.add_argument("--encoding", default="utf-8", help="encoding of TREC and Markdown files (utf-8)")
    made.add_argument(
        "--titles",
        choices=("text", "separate"),
        help="put a title into the text as its first paragraph, or keep it separate (beir and trec: text)",
    )
    made.add_argument(
        "--absent", action="store_true", help="keep evidence in documents that are not in the corpus (csv, jsonl)"
    )
    made.add_argument(
        "--ignore-self", action="store_true", help="leave the document with the query's own id out of its ranking"
    )


def import_dataset_folder(options: argparse.Namespace) -> int:
    """Import a data set and print what was counted. Raises ConfigError for wrong options, DataError for faults."""
    from harness.data.importers import Options, import_dataset

    target: Path = options.target
    given = Options(
        corpus=options.corpus,
        queries=_named("--queries", options.queries, ""),
        qrels=_named("--qrels", options.qrels, options.set),
        runs=_named("--run", options.run, None),
        columns=_pairs("--map", options.map),
        topic=options.topic,
        unit=options.unit,
        encoding=options.encoding,
        name=options.set,
        ignore_self=options.ignore_self,
        titles=options.titles,
        absent=options.absent,
    )
    counts = import_dataset(
        options.kind, options.source, target, licence=options.licence, origin=options.origin, options=given
    )
    width = max(len(f"{count:,}") for count in counts.values())
    for what, count in counts.items():
        print(f"{count:>{width},} {what}")
    print(f"{target}: imported; run `harness data check {target}` to check it")
    return OK


def _named(option: str, given: list[str], default: str | None) -> dict[str, str]:
    """Files by name, from NAME=FILE; a file alone gets the default name, or its own stem if there is none."""
    made: dict[str, str] = {}
    for pair in given:
        name, separator, file = pair.partition("=")
        if not separator:
            name, file = (Path(pair).stem if default is None else default), pair
        if name in made:
            raise ConfigError(f"{option} {pair}: '{name}' is given twice; write NAME=FILE")
        made[name] = file
    return made


def _pairs(option: str, given: list[str]) -> dict[str, str]:
    for pair in given:
        if "=" not in pair:
            raise ConfigError(f"{option} {pair}: write PART=COLUMN, such as query.text=question")
    made = dict(pair.split("=", 1) for pair in given)
    if len(made) < len(given):
        raise ConfigError(f"{option}: a part is given twice: {', '.join(given)}")
    return made
