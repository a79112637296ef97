"""`harness data import`: convert a data set of another format into a folder the harness reads."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError

RUN = "run"
"""The format of another system's run, which is added to a data set."""


def add_import_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data import`."""
    from harness.data.importers import FORMATS

    kinds = (*FORMATS, RUN)
    made.add_argument("kind", choices=kinds, metavar="FORMAT", help=f"{', '.join(FORMATS)}; {RUN} adds to a data set")
    made.add_argument(
        "source",
        help="a folder or file, a name on the Hub (huggingface), an id (ir-datasets), or a run ([NAME=]FILE)",
    )
    made.add_argument(
        "target",
        type=Path,
        nargs="?",
        help="the folder to create (default: datasets/ and the name of the source); of a run, the data set",
    )
    made.add_argument("--licence", default="", help="the licence, recorded in the manifest")
    made.add_argument("--origin", default="", metavar="TEXT", help="where the data come from, recorded in the manifest")
    made.add_argument(
        "--corpus",
        metavar="PATH",
        help="the documents, if they are not found by name: a table, or for your own questions a folder or a data set",
    )
    named = "prefix the name of the set if there are several"
    made.add_argument("--queries", action="append", default=[], metavar="[SET=]FILE", help=f"the queries; {named}")
    made.add_argument("--qrels", action="append", default=[], metavar="[SET=]FILE", help=f"the judgments; {named}")
    made.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a run to keep with the data: a TREC run, or passages (.jsonl)",
    )
    made.add_argument("--set", default="validation", metavar="NAME", help="the name of the query set (validation)")
    _add_details(made)


def _add_details(made: argparse.ArgumentParser) -> None:
    """Add the options that few formats use."""
    from harness.data.importers.options import COLUMNS

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
    made.add_argument("--encoding", default="utf-8", help="encoding of documents and of TREC files (utf-8)")
    made.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="files of documents to leave out, such as '*.pdf'",
    )
    made.add_argument(
        "--test-set",
        choices=("locked", "open"),
        help="whether a set named `test`, if there are others, is only for `run --final` (default: locked, but open "
        "for public benchmarks, whose published figures are measured on it)",
    )
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
    if options.kind == RUN:
        return _import_run(options)
    from harness.data.importers import Options, import_dataset

    target: Path = options.target or Path("datasets") / _name_of(options.source)
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
        exclude=tuple(options.exclude),
        test_set=options.test_set,
    )
    counts = import_dataset(
        options.kind, options.source, target, licence=options.licence, origin=options.origin, options=given
    )
    for line in listed_counts(counts):
        print(line)
    print(f"{target}: imported; {_next_step(target)}")
    return OK


def _import_run(options: argparse.Namespace) -> int:
    from harness.cli.arguments import dataset_folder
    from harness.core.text_files import bare_name
    from harness.data.runs import add_run, has_passages

    if options.target is None:
        raise ConfigError("data import run: name the data set too: `harness data import run mine.jsonl cookbook`")
    ((name, file),) = _named("run", [options.source], "").items()
    path = Path(file)
    name = name or Path(bare_name(path)).stem
    root = dataset_folder(str(options.target))
    add_run(root, name, path)
    retriever = "passage_run" if has_passages(path) else "trec_run"
    print(f"{root}: has the run '{name}' now; use it with `retriever: {{{retriever}: {{run: {name}}}}}`")
    return OK


def listed_counts(counts: Mapping[str, int]) -> list[str]:
    """Return a line for each count, aligned."""
    from harness.core.plurals import singular

    width = max(len(f"{count:,}") for count in counts.values())
    return [f"{count:>{width},} {singular(what) if count == 1 else what}" for what, count in counts.items()]


def _name_of(source: str) -> str:
    """The name of a data set made from this source."""
    from harness.storage.files import file_name

    path = Path(source)
    return file_name(path.resolve().name.partition(".")[0] if path.exists() else source.replace("/", "-"))


def _next_step(target: Path) -> str:
    from harness.data.manifest import read_manifest

    manifest = read_manifest(target)
    if not manifest.queries:
        return f"next, mark the evidence of questions: `harness data evidence {target} --to validation`"
    if len(manifest.queries) == 1:
        more = f"`harness data split {target}` sets queries aside for the final test"
        return f"`harness data check {target}` checks it, {more}"
    return f"`harness data check {target}` checks it"


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
