"""`harness data generate` and `review`: queries written by a language model, and their review by people."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.arguments import add_model_options, add_store_option, models_of
from harness.cli.exit_codes import OK
from harness.cli.parser import number, whole_number
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.data.manifest import Manifest
    from harness.data.synthesis import Plan

_SET = "synthetic"


def add_generate_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data generate`."""
    made.add_argument("dataset", help="a data set folder, or a name under datasets/")
    made.add_argument("--model", required=True, help="the model that writes the queries, at OPENAI_BASE_URL or OpenAI")
    made.add_argument("--checker", metavar="MODEL", help="the model that checks them (default: the same)")
    made.add_argument("--base-url", metavar="URL", help="the server (default: OPENAI_BASE_URL)")
    made.add_argument("--count", type=whole_number, default=50, metavar="N", help="number of queries to keep (50)")
    made.add_argument(
        "--several",
        type=number,
        default=0.25,
        metavar="FRACTION",
        help="fraction with several pieces of evidence (0.25)",
    )
    made.add_argument(
        "--unanswerable", type=number, default=0.1, metavar="FRACTION", help="fraction without an answer (0.1)"
    )
    made.add_argument(
        "--overlap",
        type=number,
        default=0.75,
        metavar="FRACTION",
        help="max fraction of words shared with the evidence (0.75)",
    )
    made.add_argument("--seed", type=whole_number, default=0, help="seed for the choice and order of texts (0)")
    made.add_argument("--set", default=_SET, metavar="NAME", help=f"the query set to write ({_SET})")
    made.add_argument("--sheet", type=Path, metavar="FILE", help="the review sheet, CSV (default SET-review.csv)")
    add_store_option(made)
    made.add_argument("--replace", action="store_true", help="overwrite a generated set and its sheet")
    add_model_options(made)


def add_review_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data review`."""
    made.add_argument("dataset", help="a data set folder, or a name under datasets/")
    made.add_argument("sheet", type=Path, help="the sheet with verdicts: keep or drop")
    made.add_argument("--set", default=_SET, metavar="NAME", help=f"the query set that it reviews ({_SET})")


def generate(options: argparse.Namespace) -> int:
    """Write a generated query set and its review sheet. Raises ConfigError if no query is kept."""
    from harness.cli.arguments import dataset_folder
    from harness.data.manifest import read_manifest
    from harness.data.open_corpus import open_corpus
    from harness.data.record_files import read_queries
    from harness.data.synthesis import AnswerChecker, GenerationModels, QueryWriter, write_sheet
    from harness.data.synthesis import generate as work
    from harness.data.write import write_set
    from harness.llm import AnswerCache
    from harness.running.session import store_folder
    from harness.running.stages.workspace import ANSWERS

    manifest, models, plan = read_manifest(dataset_folder(options.dataset)), models_of(options), _plan(options)
    name, sheet = options.set, options.sheet or Path(f"{options.set}-review.csv")
    _refuse_to_overwrite(manifest, name, sheet, replace=options.replace)
    writer = QueryWriter(options.model, base_url=options.base_url)
    checker = AnswerChecker(options.checker or options.model, base_url=options.base_url)
    for prompter in (writer, checker):
        if problem := prompter.problem():
            raise ConfigError(f"data generate: {problem}")
    # Locked queries must not be repeated either; reading them reveals nothing about any trial.
    others = [raw.text for other, pinned in manifest.queries.items() if other != name for raw in read_queries(pinned)]
    caller = models.caller(AnswerCache(store_folder(options.store) / ANSWERS), _notify)
    with open_corpus(manifest) as documents:
        made = work(documents, others, plan, GenerationModels(writer, checker, caller, models.price, _notify))
        for reason, count in made.dropped.items():
            print(f"{count:>5,} dropped: {reason}")
        if made.example:
            print(f"      example: {made.example}")
        if caller.spend.calls:
            print(f"{caller.spend.calls:>5,} calls sent in total, ${caller.spend.usd:.4f}")
        if not made.records:
            raise ConfigError("data generate: no query is left; nothing was written")
        write_set(manifest, name, made.records, synthetic=True)
        write_sheet(sheet, made.records, documents.by_id)
    short = f", of {plan.count:,} requested" if len(made.records) < plan.count else ""
    print(f"{len(made.records):>5,} kept{short}: query set '{name}' of {manifest.name}, marked as synthetic")
    review = f"harness data review {options.dataset} {sheet} --set {name}"
    print(f"{sheet}: fill `verdict` with keep or drop, then `{review}`")
    return OK


def _notify(line: str) -> None:
    print(line, flush=True)


def _refuse_to_overwrite(manifest: "Manifest", name: str, sheet: Path, *, replace: bool) -> None:
    """Raise ConfigError or DataError, before any cost, if the set or the sheet must not be written."""
    from harness.data.record_files import read_queries
    from harness.data.synthesis.review import is_sheet
    from harness.data.write import writable_set

    pinned = writable_set(manifest, name)
    if name in manifest.queries and not pinned.synthetic:
        raise ConfigError(f"--set {name}: contains queries written by people; choose another name")
    if name in manifest.queries:
        marks = [raw.metadata.get("synthetic") for raw in read_queries(pinned)]
        if any(isinstance(mark, dict) and mark.get("reviewed") for mark in marks):
            raise ConfigError(f"--set {name}: contains reviewed queries; choose another name, or remove the set")
        if not replace:
            raise ConfigError(f"--set {name}: contains generated queries; --replace overwrites it and its sheet")
    if sheet.is_dir() or not sheet.absolute().parent.is_dir():
        raise ConfigError(f"--sheet {sheet}: cannot be written; name a file in an existing folder")
    if replace and sheet.exists() and not is_sheet(sheet):
        raise ConfigError(f"--sheet {sheet}: exists and is not a review sheet; name another file")
    if sheet.exists() and not replace:
        raise ConfigError(f"{sheet}: exists, perhaps with verdicts; --replace overwrites it, --sheet names another")


def _plan(options: argparse.Namespace) -> "Plan":
    from harness.data.synthesis import Plan

    if options.count < 1:
        raise ConfigError(f"--count {options.count}: expected at least 1")
    for name in ("several", "unanswerable", "overlap"):
        value = getattr(options, name)
        if not 0 <= value <= 1:
            raise ConfigError(f"--{name} {value:g}: expected a fraction from 0 to 1")
    if options.several + options.unanswerable > 1:
        raise ConfigError("--several and --unanswerable: add up to more than 1")
    return Plan(options.count, options.several, options.unanswerable, options.overlap, seed=options.seed)


def review(options: argparse.Namespace) -> int:
    """Apply a review sheet to a generated query set. Raises ConfigError if the set is not a generated one."""
    from harness.cli.arguments import dataset_folder
    from harness.core.text_files import json_lines
    from harness.data.manifest import read_manifest
    from harness.data.raw_records import query as parse_query
    from harness.data.synthesis import apply_sheet
    from harness.data.write import writable_set, write_set

    manifest = read_manifest(dataset_folder(options.dataset))
    if options.set not in manifest.queries or not manifest.queries[options.set].synthetic:
        raise ConfigError(f"--set {options.set}: is not a generated query set of {manifest.name}")
    lines = list(json_lines(writable_set(manifest, options.set).path))
    for line, record in lines:
        parse_query(line, record)
    records = [record for _, record in lines]
    found = apply_sheet(options.sheet, records)
    if not found.records:
        raise ConfigError(f"{options.sheet}: drops every query; remove the set from the manifest instead")
    write_set(manifest, options.set, found.records, synthetic=True)
    message = f"{found.kept} kept ({found.changed} changed), {found.dropped} dropped, {found.open} without verdict"
    print(f"{options.set}: {message}")
    if found.ignored:
        print(f"{found.ignored} rows are changed but have no verdict; their changes are ignored", file=sys.stderr)
    return OK
