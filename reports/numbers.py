"""Numbers and evidence outcomes as text."""

import math


def probability(value: float) -> str:
    """Returns a probability to two digits; 0 and 1 appear only if it is exactly 0 or 1.

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
    """Returns an evidence outcome of the loss attribution in words.

    >>> outcome_words("dropped:top_k"), outcome_words("not_retrieved")
    ('dropped by top_k', 'not retrieved')
    """
    return (
        f"dropped by {outcome.removeprefix('dropped:')}"
        if outcome.startswith("dropped:")
        else outcome.replace("_", " ")
    )


def interval(low: float, high: float, form: str) -> str:
    """Returns `0.711 … 0.865`, each bound formatted with `form`; `too few clusters` if the bounds are NaN."""
    return "too few clusters" if math.isnan(low) else f"{_signed(low):{form}} … {_signed(high):{form}}"


def _signed(value: float) -> float:
    """The value, without the sign of a zero. A bound just below 0 still reads -0.000, so 0 is seen to be inside."""
    return value + 0.0
