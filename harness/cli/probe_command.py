"""`harness probe retriever`: ask the system of an experiment one question, and show what is made of the answer."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from harness.cli.arguments import add_store_option
from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.components.roles import Embedder, PassageService
    from harness.running.session import Session

_LONGEST = 4000
"""Characters of a response that are shown."""


def add_probe_commands(commands: CommandGroup) -> None:
    """Adds `harness probe`."""
    probe = commands.add_group("probe", "ask a system that an experiment uses, and show all that is said")
    probe.add("retriever", _retriever, "one question: request, response, and where its passages are", _options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="the experiment file")
    parser.add_argument("question", help="the question, as a query of a user")
    add_store_option(parser)


def _retriever(options: argparse.Namespace) -> int:
    from harness.data.location import locate
    from harness.experiment.yaml_file import read_experiment
    from harness.running.session import Session, store_folder

    experiment = read_experiment(options.experiment)
    session = Session(experiment, store_folder(options.store, experiment.base_dir))
    documents = session.outputs(session.trials[0]).data.documents
    for system, embedder in _systems(session):
        vector = embedder.embed([options.question], queries=True).vectors[0] if system.asks_by_vector else None
        found = system.exchange(options.question, vector)
        print(f"request: {_shown(found.sent)}")
        print(f"response: {_shown(found.received)}")
        if found.answer.failure:
            raise ConfigError(f"retriever {system.label}: {found.answer.failure}")
        hits = found.answer.hits
        print(f"{len(hits)} passages in {found.answer.ms:.0f} ms" if hits else "no passage")
        for rank, (hit, one) in enumerate(zip(hits, locate([hit.passage for hit in hits], documents), strict=True), 1):
            places = ", ".join(f"{doc}:{start}-{end}" for doc, start, end in one.places[:3])
            more = f" and {len(one.places) - 3} more" if len(one.places) > 3 else ""
            where = f"{places}{more} ({one.how})" if one.places else "unmapped: not in the corpus"
            print(f"{rank:>4}  {where}  {' '.join(hit.passage.text.split())[:60]!r}")
    return OK


def _systems(session: "Session") -> "list[tuple[PassageService, Embedder]]":
    """The distinct systems that the trials ask, and who embeds queries. Raises ConfigError if there are none."""
    found: list[tuple[PassageService, Embedder]] = []
    for trial in session.trials:
        system = trial.retriever.system
        if system is not None and system.service is not None and (system.service, trial.embedder) not in found:
            found.append((system.service, trial.embedder))
    if not found:
        raise ConfigError(f"{session.experiment.source}: no trial asks another system, as `http` does")
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} characters more"
