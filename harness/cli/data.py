"""`harness data`: bring data sets in, find and mend what is wrong with them, look at them, add to them."""

import argparse
from pathlib import Path
from typing import Any

from harness.cli.data_check import add_check_options, check
from harness.cli.data_evidence import add_evidence_options, evidence
from harness.cli.data_generate import add_generate_options, add_review_options, generate, review
from harness.cli.data_show import show
from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError

FORMATS = ("beir", "trec", "chroma", "squad", "hotpotqa", "contract-nli", "wice", "csv", "jsonl", "huggingface")
"""Named here as well, so that help needs no import."""
PARTS = (
    *("doc.id", "doc.text", "doc.title", "query.id", "query.text", "query.answer", "query.type", "query.group"),
    *("evidence.doc", "evidence.start", "evidence.end", "evidence.quote", "evidence.grade"),
)
_SUMMARY = "import, check, show, extend and pin data sets"


def add_data_commands(commands: Any) -> None:
    """Add `data` with its own commands."""
    data = commands.add_parser("data", help=_SUMMARY, description=_SUMMARY).add_subparsers(
        required=True, metavar="COMMAND"
    )

    def command(name: str, work: Any, summary: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = data.add_parser(name, help=summary, description=summary)
        made.set_defaults(command=work)
        return made

    _import_options(command("import", _import, "convert a data set into a folder the harness reads"))
    add_check_options(
        command("check", check, "find what is wrong with a data set; exit code 1 where there is an error")
    )
    shown = command(
        "show", show, "what a data set looks like: counts, lengths, positions of evidence, types of queries"
    )
    shown.add_argument("dataset", help="a data set folder, or a name under datasets/")
    shown.add_argument("--queries", metavar="SET", help="one query set (default: all)")
    shown.add_argument("--json", action="store_true", help="print JSON")
    add_evidence_options(
        command("evidence", evidence, "search the corpus, mark evidence, get the line of the query file")
    )
    add_generate_options(command("generate", generate, "have queries with evidence written by a language model"))
    add_review_options(command("review", review, "apply the verdicts of a review sheet to generated queries"))
    pinned = command("pin", _pin, "accept the files of a data set as they are now")
    pinned.add_argument("dataset", help="a data set folder, or a name under datasets/")


def _import_options(made: argparse.ArgumentParser) -> None:
    made.add_argument("kind", choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    made.add_argument("source", help="the folder or file to read; for huggingface also a name on the Hub")
    made.add_argument("target", type=Path, help="the folder to make, such as datasets/scifact")
    made.add_argument("--licence", default="", help="the licence, for the manifest")
    made.add_argument("--origin", default="", metavar="TEXT", help="where the data come from, for the manifest")
    made.add_argument("--corpus", metavar="FILE", help="the documents, where they are not found by name")
    named = "the name of the set before it where there are several"
    made.add_argument("--queries", action="append", default=[], metavar="[SET=]FILE", help=f"the queries; {named}")
    made.add_argument("--qrels", action="append", default=[], metavar="[SET=]FILE", help=f"the judgments; {named}")
    made.add_argument(
        "--run", action="append", default=[], metavar="[NAME=]FILE", help="a TREC run to keep beside them"
    )
    made.add_argument("--set", default="validation", metavar="NAME", help="the name of the query set (validation)")
    made.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="PART=COLUMN",
        help="which column a part is, as query.text=question; parts: " + ", ".join(PARTS),
    )
    made.add_argument("--topic", choices=("title", "desc", "narr"), default="title", help="the query of a TREC topic")
    made.add_argument(
        "--unit", choices=("article", "paragraph"), default="article", help="what a SQuAD document is (article)"
    )
    made.add_argument("--encoding", default="utf-8", help="of TREC and Markdown files (utf-8)")
    made.add_argument(
        "--titles",
        choices=("text", "beside"),
        help="put titles into the text as its first paragraph, or keep them beside it (text for beir and trec)",
    )
    made.add_argument("--absent", action="store_true", help="keep evidence in documents the corpus lacks (csv, jsonl)")
    made.add_argument(
        "--ignore-self", action="store_true", help="never give a query the document that has the query's own id"
    )


def _import(options: argparse.Namespace) -> int:
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
    print(f"{target}: imported; `harness data check {target}` tells what is wrong with it")
    return OK


def _named(option: str, given: list[str], default: str | None) -> dict[str, str]:
    """Files by name, from NAME=FILE; a file alone has the default name, or its own where there is none."""
    made: dict[str, str] = {}
    for pair in given:
        name, parted, file = pair.partition("=")
        if not parted:
            name, file = (Path(pair).stem if default is None else default), pair
        if name in made:
            raise ConfigError(f"{option} {pair}: '{name}' is named twice; write NAME=FILE")
        made[name] = file
    return made


def _pairs(option: str, given: list[str]) -> dict[str, str]:
    for pair in given:
        if "=" not in pair:
            raise ConfigError(f"{option} {pair}: write PART=COLUMN, such as query.text=question")
    made = dict(pair.split("=", 1) for pair in given)
    if len(made) < len(given):
        raise ConfigError(f"{option}: a part is named twice: {', '.join(given)}")
    return made


def _pin(options: argparse.Namespace) -> int:
    from harness.data.manifest import read_manifest, write_manifest

    root = dataset_folder(options.dataset)
    write_manifest(read_manifest(root))
    print(f"{root / 'manifest.yaml'}: hashes renewed")
    return OK


def dataset_folder(name: str) -> Path:
    """The folder of a data set, by path or by its name under `datasets`."""
    from harness.data.manifest import find_dataset

    folder = Path(name)
    return folder if (folder / "manifest.yaml").is_file() else find_dataset(name, Path.cwd())
