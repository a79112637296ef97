"""Numbers and causes of loss, as people read them."""

import math


def probability(value: float) -> str:
    """A probability to two digits; never 0 or 1 where it is not.

    >>> probability(0.0004), probability(0.049), probability(0.997)
    ('<.001', '.049', '>.99')
    """
    if math.isnan(value):
        return "–"
    if 0 < value < 0.001:
        return "<.001"
    if 0.99 < value < 1:
        return ">.99"
    if value in (0, 1):
        return f"{value:.0f}"
    return f"{value:{'.3f' if value < 0.1 else '.2f'}}".lstrip("0")


def outcome_words(outcome: str) -> str:
    """A fate of the loss ledger in words.

    >>> fate_words("dropped:top_k"), fate_words("not_retrieved")
    ('dropped by top_k', 'not retrieved')
    """
    return (
        f"dropped by {outcome.removeprefix('dropped:')}"
        if outcome.startswith("dropped:")
        else outcome.replace("_", " ")
    )


def interval(low: float, high: float, form: str) -> str:
    """`0.711 … 0.865`, each bound in the given form; why there is none where clusters are too few for one."""
    return "too few clusters" if math.isnan(low) else f"{_signed(low):{form}} … {_signed(high):{form}}"


def _signed(value: float) -> float:
    """The value, without the sign of a zero. A bound just below 0 reads -0.000, so that 0 is seen to lie inside."""
    return value + 0.0
