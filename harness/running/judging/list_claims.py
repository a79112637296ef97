"""List the claims of an experiment's reference answers, for people to read and edit."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.core.errors import ConfigError
from harness.experiment.experiment import Experiment
from harness.running.judging.judging import Judging
from harness.running.models import Models, answers_of
from harness.running.session import Session, store_folder


def claims(
    experiment: Experiment, store: Path | str | None, models: Models, notify: Callable[[str], None]
) -> Mapping[str, Sequence[str]]:
    """Return the claims of each query's reference answer, by query id; those not stored are requested.

    Raises ConfigError if no judge of the experiment needs claims.
    """
    session = Session(experiment, store_folder(store, experiment.base_dir))
    caller = models.caller(answers_of(session), notify)
    judging = Judging(session, caller.answers, price=models.price)
    if not judging.claims:
        raise ConfigError("judge claims: no judge of the experiment needs them; set `of: answer` for context_recall")
    listing = judging.claims.estimate()
    notify(listing.summary("claims of reference answers"))
    judging.claims.ask(caller)
    return judging.claims.by_query()
