"""Options that several commands share: experiments, data sets, params, stores, models and their costs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.parser import number, whole_number
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.experiment.experiment import Experiment
    from harness.running.launch_result import Launch
    from harness.running.models import Models


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--store`."""
    parser.add_argument(
        "--store",
        metavar="PLACE",
        help="stored results: a folder, or s3://BUCKET/PREFIX, gs://…, az://… "
        "(default: HARNESS_STORE, else .harness in the project)",
    )


def add_workers_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--workers`."""
    parser.add_argument(
        "--workers", type=whole_number, default=1, metavar="N", help="number of parallel tasks (default 1)"
    )


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--workers` and `--on`."""
    add_workers_option(parser)
    parser.add_argument(
        "--on",
        metavar="WHERE",
        help="where tasks run: processes, dask://HOST:PORT, dask://local, ray://…, or package.module:callable that "
        "returns an Executor (default: HARNESS_ON, else processes)",
    )


def add_tracking_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--tracking`, which may be repeated."""
    parser.add_argument(
        "--tracking",
        action="append",
        metavar="URI",
        help="where to log, may be repeated: jsonl:FOLDER, or an MLflow tracking URI "
        "(default: MLFLOW_TRACKING_URI, else mlflow.db in the project)",
    )


def destinations(options: argparse.Namespace) -> list[str] | None:
    """Returns where to log: empty for nowhere, None for the default. Raises ConfigError for contradicting options."""
    given: list[str] = options.tracking or []
    if not options.no_mlflow:
        return given or None
    for destination in given:
        if not destination.lower().startswith("jsonl:"):
            raise ConfigError(f"--no-mlflow contradicts --tracking {destination}; leave one of them out")
    return given


def add_part_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--filter` and `--limit`, for a part of an experiment."""
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="PARAM=VALUE",
        help="only trials with this param, such as chunker=recursive; may be repeated; marks results as partial",
    )
    parser.add_argument(
        "--limit", type=whole_number, metavar="N", help="a sample of at most N queries; marks results as partial"
    )


def add_model_options(parser: argparse.ArgumentParser, *, spends: bool = True) -> None:
    """Adds options for the prices of language models and, if the command `spends`, for its budget."""
    parser.add_argument(
        "--price",
        metavar="IN,OUT",
        help="dollars per million input and output tokens, for models without a known price",
    )
    if spends:
        parser.add_argument("--budget", type=number, metavar="USD", help="max dollars to spend on remote models")
        parser.add_argument("--offline", action="store_true", help="do not call remote models; use stored answers only")


def models_of(options: argparse.Namespace) -> "Models":
    """Returns the model options as `Models`. Raises ConfigError if --budget or --price is invalid."""
    from harness.running.models import Models

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


def params_of(option: str, given: Sequence[str]) -> dict[str, str]:
    """Returns params by name, from PARAM=VALUE texts. Raises ConfigError if one has no `=`."""
    for pair in given:
        if "=" not in pair:
            raise ConfigError(f"{option} {pair}: write PARAM=VALUE, such as chunker=fixed")
    return dict(pair.split("=", 1) for pair in given)


def experiment_of(options: argparse.Namespace) -> "Experiment | str":
    """Returns the experiment of a file, or the name of an experiment as it was given. Raises ConfigError."""
    from harness.experiment.yaml_file import read_experiment

    path = Path(options.experiment)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return whole_or_part(read_experiment(path), options)
    if getattr(options, "filter", None) or getattr(options, "limit", None):
        raise ConfigError("--filter and --limit need the experiment file; the newest launch is found by its name alone")
    return str(options.experiment)


def whole_or_part(experiment: "Experiment", options: argparse.Namespace) -> "Experiment":
    """Returns the part of an experiment that the options name; all of it without such options. Raises ConfigError."""
    wanted, limit = params_of("--filter", getattr(options, "filter", ())), getattr(options, "limit", None)
    if not wanted and limit is None:
        return experiment
    from harness.experiment.part import part_of

    return part_of(experiment, wanted, limit=limit)


def launch_of(options: argparse.Namespace) -> "Launch":
    """Returns the newest stored launch of the experiment that the options name. Raises ConfigError if there is none."""
    from harness.running.launch_history import stored_launch

    return stored_launch(experiment_of(options), store=options.store, final=options.final)


def dataset_folder(name: str) -> Path:
    """Returns the folder of a data set, by path or by its name under `datasets`. Raises DataError if there is none."""
    from harness.data.manifest import find_dataset

    folder = Path(name)
    return folder if (folder / "manifest.yaml").is_file() else find_dataset(name, Path.cwd())
