"""`harness judge`: compare what judges say with what people say."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.run.judging.agreement import Agreement
    from harness.run.judging.judging import Models


def add_model_options(made: argparse.ArgumentParser, *, spends: bool = True) -> None:
    """Options on what language models cost and, for a command that asks them, on what may be spent."""
    made.add_argument("--price", metavar="IN,OUT", help="dollars per million tokens, where no list has them")
    if spends:
        made.add_argument("--budget", type=float, metavar="USD", help="spend no more than this on models elsewhere")
        made.add_argument("--offline", action="store_true", help="ask no model elsewhere; use stored answers only")


def models_of(options: argparse.Namespace) -> "Models":
    """The options as the engine takes them; raises ConfigError."""
    from harness.run.judging.judging import Models

    budget = getattr(options, "budget", None)
    if budget is not None and not 0 <= budget < 1e9:
        raise ConfigError(f"--budget {budget:g}: expected dollars, such as 0.50")
    price = None
    if options.price is not None:
        try:
            prompt, answer = (float(part) for part in options.price.split(","))
        except ValueError:
            prompt = answer = -1.0
        if not (0 <= prompt < 1e6 and 0 <= answer < 1e6):
            raise ConfigError(f"--price {options.price}: write IN,OUT in dollars per million tokens, such as 0.1,0.5")
        price = (prompt, answer)
    return Models(budget, price, getattr(options, "offline", False))


def add_judge_commands(commands: Any) -> None:
    """Add `judge` with its own commands."""
    judge = commands.add_parser("judge", help="compare judges with people").add_subparsers(
        required=True, metavar="COMMAND"
    )

    def command(name: str, work: Any, summary: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = judge.add_parser(name, help=summary, description=summary)
        made.set_defaults(command=work)
        return made

    sampled = command("sample", _sample, "draw passages at random for people to grade")
    sampled.add_argument("experiment", type=Path, help="the experiment file; its trials must have run")
    sampled.add_argument("--out", type=Path, required=True, metavar="FILE", help="the sheet to write, JSON lines")
    sampled.add_argument("--per-query", type=int, default=2, metavar="N", help="passages drawn per query (default 2)")
    sampled.add_argument("--queries", type=int, metavar="N", help="queries drawn (default: all)")
    sampled.add_argument("--seed", type=int, default=0)
    labelled = command("label", _label, "grade the passages of a sheet, one after the other; stop and go on at will")
    labelled.add_argument("sheet", type=Path)
    agreed = command("agree", _agree, "how well a judge agrees with a graded sheet, and what its means become")
    agreed.add_argument("experiment", type=Path, nargs="?", help="the experiment file; its trials must have run")
    agreed.add_argument("sheet", type=Path, nargs="?", help="the sheet that people have graded")
    agreed.add_argument(
        "--people", type=Path, metavar="FILE", help="people's labels instead of a sheet: CSV, JSON lines or qrels"
    )
    agreed.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="a judge's labels instead of an experiment; or both raters' in the columns people and judge",
    )
    agreed.add_argument(
        "--relevant-from", type=int, default=2, metavar="GRADE", help="with --labels: the grade to call relevant (2)"
    )
    agreed.add_argument("--judge", help="the judge's name (default: the first that grades passages with a model)")
    agreed.add_argument("--swap", action="store_true", help="ask again with passages in reverse order: position bias")
    agreed.add_argument("--json", action="store_true", help="print JSON")
    listed = command("claims", _claims, "print the claims of the reference answers, as JSON lines to edit")
    listed.add_argument("experiment", type=Path)
    for made in (sampled, agreed, listed):
        made.add_argument("--store", type=Path, help="folder of stage outputs (default: HARNESS_STORE, else .harness)")
    for made in (agreed, listed):
        add_model_options(made)


def _sample(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from harness.run.judging.agreement_study import sample
    from harness.run.judging.grading_sheet import read_sheet, write_sheet

    if options.out.exists() and any(row.grade is not None for row in read_sheet(options.out)):
        raise ConfigError(f"judge sample: {options.out} holds grades; name another file with --out")
    drawn = sample(
        read_experiment(options.experiment),
        store=options.store,
        per_query=options.per_query,
        queries=options.queries,
        seed=options.seed,
    )
    write_sheet(options.out, drawn)
    print(f"{options.out}: {len(drawn)} passages of {len({row.query for row in drawn})} queries to grade")
    print(f"grade them with `harness judge label {options.out}`, or set `grade` in each line of the file")
    return OK


def _label(options: argparse.Namespace) -> int:
    from harness.cli.judge_label import label

    return label(options.sheet)


def _agree(options: argparse.Namespace) -> int:
    from reports.agreement import as_json, text

    found = _of_labels(options) if options.labels else _of_experiment(options)
    print(as_json(found) if options.json else text(found))
    return OK


def _of_labels(options: argparse.Namespace) -> "Agreement":
    """The agreement of files of labels; raises ConfigError where they are not both there."""
    from harness.components.labels import GREATEST, both_raters, read_labels
    from harness.run.judging.agreement import labels_agreement

    if options.experiment or options.judge or options.swap:
        raise ConfigError("judge agree: --labels goes without an experiment, --judge and --swap: the file is the judge")
    if not 1 <= options.relevant_from <= GREATEST:
        raise ConfigError(f"--relevant-from {options.relevant_from}: expected a grade from 1 to {GREATEST}")
    if options.people:
        judge, people = read_labels(options.labels), read_labels(options.people)
    elif both_raters(options.labels):
        judge, people = read_labels(options.labels, "judge"), read_labels(options.labels, "people")
    else:
        raise ConfigError(
            f"judge agree: {options.labels} has no columns people and judge; name people's labels with --people FILE"
        )
    return labels_agreement(judge, people, relevant_from=options.relevant_from)


def _of_experiment(options: argparse.Namespace) -> "Agreement":
    """The agreement of an experiment's judge with a graded sheet, or with people's labels in a file."""
    from harness.components.labels import read_labels
    from harness.experiment.yaml_file import read_experiment
    from harness.run.judging.agreement_study import agree, agree_with_labels
    from harness.run.judging.grading_sheet import read_sheet

    if not options.experiment or bool(options.sheet) == bool(options.people):
        raise ConfigError("judge agree: name an experiment and a graded sheet, or --people FILE, or --labels FILE")
    given: dict[str, Any] = {
        "store": options.store,
        "judge": options.judge,
        "models": models_of(options),
        "tell": lambda line: print(line, file=sys.stderr, flush=True),
    }
    experiment = read_experiment(options.experiment)
    if options.people:
        if options.swap:
            raise ConfigError("judge agree: --swap goes with a sheet")
        return agree_with_labels(experiment, read_labels(options.people), **given)
    return agree(experiment, read_sheet(options.sheet), swap=options.swap, **given)


def _claims(options: argparse.Namespace) -> int:
    import json

    from harness.experiment.yaml_file import read_experiment
    from harness.run.judging.agreement_study import claims

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    for query, listed in claims(read_experiment(options.experiment), options.store, models_of(options), tell).items():
        print(json.dumps({"id": query, "claims": list(listed)}, ensure_ascii=False))
    return OK
