"""Contexts that language models write for chunks: all that a launch lacks, asked for before anything is indexed."""

from collections.abc import Callable
from typing import NamedTuple

from harness.component import LlmAugmenter
from harness.experiment import Trial
from harness.llm import Archive, Caller, Estimate, Panel, Task, all_missing, estimate
from harness.session import Session


class Unwritten(NamedTuple):
    """One chunking whose contexts are not stored, a trial that uses it, and what has to be asked."""

    trial: Trial
    augmenter: LlmAugmenter
    tasks: list[Task]


def unwritten(session: Session) -> list[Unwritten]:
    """The chunkings of a session whose contexts a model still has to write, each once."""
    found: dict[str, Unwritten] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        address = pipeline.passages_address(trial)
        if pipeline.unwritten(trial) and address not in found:
            assert isinstance(trial.augmenter, LlmAugmenter)
            found[address] = Unwritten(trial, trial.augmenter, pipeline.context_tasks(trial))
    return list(found.values())


def costs(wanted: list[Unwritten], archive: Archive, price: tuple[float, float] | None) -> dict[str, Estimate]:
    """What writing them takes, by augmenter and model; contexts that are stored already cost nothing."""
    found: dict[str, Estimate] = {}
    for one, left in zip(wanted, all_missing(archive, [(one.augmenter, one.tasks) for one in wanted]), strict=True):
        name = f"{one.augmenter.name()} ({one.augmenter.model})"
        found[name] = found.get(name, Estimate()).plus(estimate(archive, one.augmenter, left, price))
    return found


def write_contexts(
    session: Session, caller: Caller, price: tuple[float, float] | None, tell: Callable[[str], None]
) -> None:
    """Have all missing contexts written and stored; raises JudgeError where too many of them fail."""
    wanted = unwritten(session)
    if not wanted:
        return
    for name, cost in costs(wanted, caller.archive, price).items():
        tell(cost.told(name))
    Panel(caller).ask([(one.augmenter, one.tasks) for one in wanted], "write contexts")
    if caller.stopped:
        raise KeyboardInterrupt
    for one in wanted:
        session.pipeline(one.trial).contexts(one.trial)
