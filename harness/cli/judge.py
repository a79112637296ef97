"""`harness judge`: measure how well judges agree with people."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.arguments import add_model_options, add_store_option, models_of
from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup, whole_number
from harness.core.errors import ConfigError
from harness.core.plurals import plural

if TYPE_CHECKING:
    from harness.running.judging.agreement import Agreement


def add_judge_commands(commands: CommandGroup) -> None:
    """Adds `harness judge` with its subcommands."""
    judge = commands.add_group("judge", "measure how well judges agree with people")
    judge.add("sample", _sample, "draw random passages for people to grade", _sample_options)
    judge.add(
        "label", _label, "grade the passages of a sheet in the terminal; stop and continue at any time", _label_options
    )
    judge.add("agree", _agree, "measure a judge's agreement with human grades, and correct its means", _agree_options)
    judge.add("claims", _claims, "print the claims of the reference answers, as JSON lines to edit", _claims_options)


def _sample_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file; its trials must have run")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the sheet to write, as JSON lines")
    parser.add_argument(
        "--per-query", type=whole_number, default=2, metavar="N", help="passages to draw per query (default 2)"
    )
    parser.add_argument("--queries", type=whole_number, metavar="N", help="queries to draw (default: all)")
    parser.add_argument("--seed", type=whole_number, default=0, help="random seed (default 0)")
    add_store_option(parser)


def _label_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sheet", type=Path, help="the sheet to grade")


def _agree_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, nargs="?", help="the experiment file; its trials must have run")
    parser.add_argument("sheet", type=Path, nargs="?", help="the sheet with human grades")
    parser.add_argument(
        "--people", type=Path, metavar="FILE", help="human labels instead of a sheet: CSV, JSON lines or qrels"
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="a judge's labels instead of an experiment; or the labels of both, in the columns people and judge",
    )
    parser.add_argument(
        "--relevant-from",
        type=whole_number,
        default=2,
        metavar="GRADE",
        help="with --labels: the lowest grade that counts as relevant (default 2)",
    )
    parser.add_argument("--judge", help="the judge's name (default: the first that grades passages with a model)")
    parser.add_argument(
        "--swap", action="store_true", help="judge again with the passages in reverse order, to measure position bias"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store_option(parser)
    add_model_options(parser)


def _claims_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file")
    add_store_option(parser)
    add_model_options(parser)


def _sample(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from harness.running.judging.grading_sample import sample
    from harness.running.judging.grading_sheet import read_sheet, write_sheet

    if options.out.exists() and any(row.grade is not None for row in read_sheet(options.out)):
        raise ConfigError(f"judge sample: {options.out} already contains grades; name another file with --out")
    drawn = sample(
        read_experiment(options.experiment),
        store=options.store,
        per_query=options.per_query,
        queries=options.queries,
        seed=options.seed,
    )
    write_sheet(options.out, drawn)
    queries = len({row.query for row in drawn})
    print(f"{options.out}: {plural(len(drawn), 'passage')} of {plural(queries, 'query')} to grade")
    print(f"grade them with `harness judge label {options.out}`, or set `grade` in each line of the file")
    return OK


def _label(options: argparse.Namespace) -> int:
    from harness.cli.judge_label import label

    return label(options.sheet)


def _agree(options: argparse.Namespace) -> int:
    from reports.agreement_text import as_json, text

    found = _of_labels(options) if options.labels else _of_experiment(options)
    print(as_json(found) if options.json else text(found))
    return OK


def _of_labels(options: argparse.Namespace) -> "Agreement":
    """The agreement of two raters' labels in files. Raises ConfigError if a file or column is missing."""
    from harness.components.labels import GREATEST, both_raters, read_labels
    from harness.running.judging.agreement import labels_agreement

    if options.experiment or options.judge or options.swap:
        raise ConfigError(
            "judge agree: --labels replaces the judge; do not combine it with an experiment, --judge or --swap"
        )
    if not 1 <= options.relevant_from <= GREATEST:
        raise ConfigError(f"--relevant-from {options.relevant_from}: expected a grade from 1 to {GREATEST}")
    if options.people:
        judge, people = read_labels(options.labels), read_labels(options.people)
    elif both_raters(options.labels):
        judge, people = read_labels(options.labels, "judge"), read_labels(options.labels, "people")
    else:
        raise ConfigError(
            f"judge agree: {options.labels} has no columns people and judge; name the human labels with --people FILE"
        )
    return labels_agreement(judge, people, relevant_from=options.relevant_from)


def _of_experiment(options: argparse.Namespace) -> "Agreement":
    """The agreement of an experiment's judge with a graded sheet, or with human labels in a file."""
    from harness.components.labels import read_labels
    from harness.experiment.yaml_file import read_experiment
    from harness.running.judging.agreement_study import agree, agree_with_labels
    from harness.running.judging.grading_sheet import read_sheet

    if not options.experiment or bool(options.sheet) == bool(options.people):
        raise ConfigError("judge agree: name an experiment and a graded sheet, or --people FILE, or --labels FILE")
    given: dict[str, Any] = {
        "store": options.store,
        "judge": options.judge,
        "models": models_of(options),
        "notify": lambda line: print(line, file=sys.stderr, flush=True),
    }
    experiment = read_experiment(options.experiment)
    if options.people:
        if options.swap:
            raise ConfigError("judge agree: --swap requires a sheet")
        return agree_with_labels(experiment, read_labels(options.people), **given)
    return agree(experiment, read_sheet(options.sheet), swap=options.swap, **given)


def _claims(options: argparse.Namespace) -> int:
    import json

    from harness.experiment.yaml_file import read_experiment
    from harness.running.judging.list_claims import claims

    def notify(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    for query, listed in claims(read_experiment(options.experiment), options.store, models_of(options), notify).items():
        print(json.dumps({"id": query, "claims": list(listed)}, ensure_ascii=False))
    return OK
