"""Metric names: `recall@5` at a rank, `recall@1000t` at a token budget, `mrr` over the entire selection."""

import re
from collections.abc import Collection
from typing import NamedTuple

from harness.core.errors import ConfigError, did_you_mean
from harness.evaluation.metrics.matching import Ranking
from harness.evaluation.metrics.measures import MEASURES, TREC_NAMES

_NAME = re.compile(
    r"(?P<measure>[a-z0-9_]+)(?:@(?:(?P<cutoff>[1-9][0-9]{0,8})(?P<tokens>t)?|(?P<level>[01]\.[0-9]+)))?"
)


class Metric(NamedTuple):
    """A measure with its cutoff: a rank `k`, a budget of `tokens`, a recall `level`, or none (the entire selection)."""

    measure: str
    k: int | None = None
    tokens: int | None = None
    level: float | None = None

    def value(self, ranking: Ranking) -> float:
        """The value of this metric for a ranking that is already cut to the token budget, if there is one."""
        return MEASURES[self.measure](ranking, self.k if self.level is None else self.level)

    def __str__(self) -> str:
        if self.level is not None:
            return f"{self.measure}@{self.level}"
        if self.k is not None:
            return f"{self.measure}@{self.k}"
        return self.measure if self.tokens is None else f"{self.measure}@{self.tokens}t"


def is_metric(name: str, own: Collection[str] = ()) -> bool:
    """Whether `name` is a valid metric name; `own` are the names of a user's own measures.

    >>> is_metric("recall@5"), is_metric("mrr"), is_metric("index_bytes")
    (True, True, False)
    """
    try:
        parse_metric(name, own)
    except ConfigError:
        return False
    return True


def split_metric(name: str) -> Metric:
    """The measure and the cutoff in a metric's name, whether there is such a measure or not.

    >>> split_metric("recall@1000t")
    Metric(measure='recall', k=None, tokens=1000, level=None)
    """
    match = _NAME.fullmatch(name)
    if not match:
        return Metric(name)
    if match["level"]:
        return Metric(match["measure"], level=float(match["level"]))
    if not match["cutoff"]:
        return Metric(match["measure"])
    cutoff = int(match["cutoff"])
    return Metric(match["measure"], tokens=cutoff) if match["tokens"] else Metric(match["measure"], k=cutoff)


def parse_metric(name: str, own: Collection[str] = ()) -> Metric:
    """The metric with this name; `own` are the names of a user's own measures.

    Raises ConfigError for an unknown measure or a cutoff that it does not take.
    """
    match = _NAME.fullmatch(name)
    measure = match["measure"] if match else name.partition("@")[0]
    known = (*MEASURES, *own)
    if ":" in name:
        raise ConfigError(f"no metric named '{name}'; here your own metrics go by their names, such as nugget_recall@5")
    if measure not in known:
        here = next((ours for trec, ours in TREC_NAMES.items() if re.fullmatch(rf"{trec}(_[0-9.]+)?", measure)), None)
        close = f" trec_eval's {measure} is {here} here." if here else did_you_mean(measure, known)
        raise ConfigError(f"no metric named '{name}'.{close} Measures: {', '.join(known)}; your own: file.py:Class")
    declared = MEASURES.get(measure)
    if declared and declared.cutoff == "level":
        if not match or not match["level"] or float(match["level"]) > 1:
            raise ConfigError(f"metric '{name}': {measure} takes a recall level from 0 to 1: write {measure}@0.1")
    elif not match or match["level"]:
        raise ConfigError(
            f"metric '{name}': write {measure}@5 for a rank, {measure}@1000t for a token budget, or {measure}"
        )
    elif match["cutoff"] and declared and declared.oracle != "no":
        raise ConfigError(f"metric '{name}': {measure} looks at all chunks of the corpus and takes no cutoff")
    elif match["cutoff"] and declared and declared.cutoff == "none":
        raise ConfigError(f"metric '{name}': {measure} takes no cutoff")
    return split_metric(name)
