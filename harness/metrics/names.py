"""Names of measures: `recall@5` at a rank, `recall@1000t` at a token budget, `mrr` over the whole selection."""

import re
from typing import NamedTuple

from harness.errors import ConfigError, did_you_mean
from harness.metrics.measures import MEASURES

_NAME = re.compile(r"(?P<measure>[a-z_]+)(?:@(?P<cutoff>[1-9][0-9]*)(?P<tokens>t)?)?")


class Metric(NamedTuple):
    """A measure with its cutoff: a rank `k`, a budget of `tokens`, or neither for everything selected."""

    measure: str
    k: int | None = None
    tokens: int | None = None

    def __str__(self) -> str:
        if self.k is not None:
            return f"{self.measure}@{self.k}"
        return self.measure if self.tokens is None else f"{self.measure}@{self.tokens}t"


def is_metric(name: str) -> bool:
    """Whether a text names a metric.

    >>> is_metric("recall@5"), is_metric("mrr"), is_metric("index_bytes")
    (True, True, False)
    """
    try:
        parse_metric(name)
    except ConfigError:
        return False
    return True


def parse_metric(name: str) -> Metric:
    """The metric of a name; raises ConfigError for an unknown one.

    >>> parse_metric("recall@1000t")
    Metric(measure='recall', k=None, tokens=1000)
    """
    match = _NAME.fullmatch(name)
    measure = match["measure"] if match else name.partition("@")[0]
    if measure not in MEASURES:
        known = ", ".join(MEASURES)
        raise ConfigError(f"no metric named '{name}'.{did_you_mean(measure, MEASURES)} Measures: {known}")
    if not match:
        raise ConfigError(
            f"metric '{name}': write {measure}@5 for a rank, {measure}@1000t for a token budget, or {measure}"
        )
    if not match["cutoff"]:
        return Metric(measure)
    if measure.endswith("precision_omega"):
        raise ConfigError(f"metric '{name}': {measure} looks at all chunks of the corpus and takes no cutoff")
    cutoff = int(match["cutoff"])
    return Metric(measure, tokens=cutoff) if match["tokens"] else Metric(measure, k=cutoff)
