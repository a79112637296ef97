"""Checks, before any work, that the components of a trial fit together, so that no meaningless number is computed."""

from collections.abc import Sequence

from harness.components.chunkers import NoChunker
from harness.components.component import step_labels
from harness.components.roles import BaseAugmenter, BaseChunker, BaseRetriever, Judge, Selector
from harness.components.selectors import TopK
from harness.core.errors import ConfigError
from harness.evaluation.metrics import split_metric
from harness.evaluation.metrics.measures import MEASURES
from harness.experiment.parsing import key_path

_KINDS = {"unit": "between 0 and 1", "cosine": "cosines", "raw": "of unknown range"}


def check_system(
    chunker: BaseChunker, augmenter: BaseAugmenter, retriever: BaseRetriever, metrics: Sequence[str], where: str
) -> None:
    """Raise ConfigError unless chunks are those of the harness, or of a system that cuts the corpus by itself."""
    name = retriever.name()
    if retriever.system is None:
        if chunker.name() == NoChunker.name():
            raise ConfigError(
                f"{key_path(where, 'chunker')}: none is for retrievers of other systems, but {name} ranks chunks"
            )
        return
    for slot, part in (("chunker", chunker), ("augmenter", augmenter)):
        if part.name() != "none":
            message = f"{name} returns passages of its own, which {part.name()} cannot change"
            raise ConfigError(f"{key_path(where, slot)}: {message}; set `{slot}: none`")
    for metric in metrics:
        measure = MEASURES.get(split_metric(metric).measure)
        if measure is not None and measure.oracle != "no":
            raise ConfigError(
                f"{key_path(where, 'metrics')}: {metric} needs to know all chunks, and {name} shows only what it finds"
            )


def check_steps(retriever: BaseRetriever, steps: Sequence[Selector], judges: Sequence[Judge], where: str) -> None:
    """Raise ConfigError if a step cannot use the scores it gets, takes more hits than the retriever returns, or uses
    the model of a judge.
    """
    scale, source = retriever.scale, retriever.name()
    judging = {_bare(judge.model): judge.name() for judge in judges if judge.model}
    for label, step in zip(step_labels(steps), steps, strict=True):
        place = f"{where}.{label}"
        if scale not in step.needs:
            wanted = " or ".join(_KINDS[kind] for kind in step.needs)
            message = f"the scores of {source} are {_KINDS[scale]}, but this step needs scores that are {wanted}"
            raise ConfigError(f"{place}: {message}; put `normalize` before it")
        if isinstance(step, TopK) and step.k > retriever.depth:
            message = f"takes {step.k} hits, but the retriever returns {retriever.depth}"
            raise ConfigError(f"{place}: {message}; set retriever.depth to {step.k}")
        prompter = step.prompter
        if prompter and _bare(prompter.model) in judging:
            judge = judging[_bare(prompter.model)]
            raise ConfigError(
                f"{place}: {prompter.model} is also the model of {judge}, which would judge its own choice"
            )
        after = step.scale(scale)
        scale, source = after, label if after != scale else source


def _bare(model: str) -> str:
    """A model's name without its provider, case-folded."""
    return model.rpartition("/")[2].casefold()
