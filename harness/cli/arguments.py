"""What several commands read in the same way: experiments, data sets, params, models and their costs."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.experiment.experiment import Experiment
    from harness.running.launch_result import Launch
    from harness.running.models import Models

Command = Callable[[argparse.Namespace], int]
"""Does the work of a command and returns its exit code."""


class CommandParser(argparse.ArgumentParser):
    """The parser of one command. Its options are added when the command is used, so that no other imports for them."""

    add_options: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.add_options is not None:
            add, self.add_options = self.add_options, None
            add(self)
        return super().parse_known_args(args, namespace)


class CommandGroup:
    """The commands below one parser: `harness ...`, `harness data ...`, `harness judge ...`."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=CommandParser)

    def add(
        self, name: str, work: Command, summary: str, options: Callable[[argparse.ArgumentParser], None] | None = None
    ) -> None:
        """Add a command whose `work` returns the exit code; `options` adds its options to its parser."""
        parser = self._commands.add_parser(name, help=summary, description=summary)
        parser.set_defaults(command=work)
        parser.add_options = options

    def add_group(self, name: str, summary: str) -> "CommandGroup":
        """Add a command that has commands of its own."""
        return CommandGroup(self._commands.add_parser(name, help=summary, description=summary))


def add_store_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", type=Path, help="folder of stage outputs (default: HARNESS_STORE, else .harness)")


def add_workers_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="tasks at a time (default 1)")


def add_tracking_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tracking", metavar="URI", help="MLflow tracking URI (default: MLFLOW_TRACKING_URI, else ./mlflow.db)"
    )


def add_model_options(parser: argparse.ArgumentParser, *, spends: bool = True) -> None:
    """Options on what language models cost and, for a command that asks them, on what may be spent."""
    parser.add_argument("--price", metavar="IN,OUT", help="dollars per million tokens, where no list has them")
    if spends:
        parser.add_argument("--budget", type=float, metavar="USD", help="spend no more than this on remote models")
        parser.add_argument("--offline", action="store_true", help="ask no remote model; use stored answers only")


def models_of(options: argparse.Namespace) -> "Models":
    """The model options as the engine takes them. Raises ConfigError."""
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
    """Params by name, from PARAM=VALUE. Raises ConfigError."""
    for pair in given:
        if "=" not in pair:
            raise ConfigError(f"{option} {pair}: write PARAM=VALUE, such as chunker=fixed")
    return dict(pair.split("=", 1) for pair in given)


def experiment_of(options: argparse.Namespace) -> "Experiment | str":
    """The experiment of a file, or the name of one as it was given."""
    from harness.experiment.yaml_file import read_experiment

    path = Path(options.experiment)
    return read_experiment(path) if path.suffix in (".yaml", ".yml") or path.is_file() else str(options.experiment)


def launch_of(options: argparse.Namespace) -> "Launch":
    """The newest stored launch of the experiment that the options name. Raises ConfigError."""
    from harness.running.launch_history import stored_launch

    return stored_launch(experiment_of(options), store=options.store, final=options.final)


def dataset_folder(name: str) -> Path:
    """The folder of a data set, by path or by its name under `datasets`. Raises DataError."""
    from harness.data.manifest import find_dataset

    folder = Path(name)
    return folder if (folder / "manifest.yaml").is_file() else find_dataset(name, Path.cwd())
