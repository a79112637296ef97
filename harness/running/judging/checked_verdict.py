"""Checks on a judge's verdict before its scores are used."""

from harness.components.roles import Judge
from harness.components.verdict import Score, Verdict
from harness.core.errors import ConfigError


def checked_verdict(where: str, judge: Judge, verdict: Verdict) -> Verdict:
    """Return the verdict of a judge unchanged. Raises ConfigError, beginning with `where`, if it is invalid.

    It needs the judge's measures, scores from 0 to 1 within their bounds, and ranks from 1.
    """
    if not isinstance(verdict, Verdict):
        raise ConfigError(f"{where}: score must return a Verdict, not {type(verdict).__name__}")
    if set(verdict.scores) != set(judge.measures):
        message = f"score returned {', '.join(verdict.scores) or 'no measures'}"
        raise ConfigError(f"{where}: {message}; its measures are {', '.join(judge.measures)}")
    for name, score in verdict.scores.items():
        if score is None:
            continue
        if not isinstance(score, Score):
            raise ConfigError(f"{where}: {name}: expected a Score, got {score!r:.40}")
        numbers = [score.low, score.high, *([] if score.value is None else [score.value])]
        if not all(isinstance(one, int | float) and -1e-9 <= one <= 1 + 1e-9 for one in numbers):
            raise ConfigError(f"{where}: {name}: expected scores from 0 to 1, got {numbers}")
        if not score.low - 1e-9 <= (score.low if score.value is None else score.value) <= score.high + 1e-9:
            raise ConfigError(f"{where}: {name}: {score.value} is outside its bounds {score.low} to {score.high}")
    rank = next((one.rank for one in verdict.findings if one.rank is not None and one.rank < 1), None)
    if rank is not None:
        raise ConfigError(f"{where}: a finding has rank {rank}; ranks start at 1")
    return verdict
