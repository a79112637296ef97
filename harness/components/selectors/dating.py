"""How old a document is, as of a day that the experiment names: by the clock, yesterday's run would not repeat."""

from datetime import date, datetime

from harness.core.errors import ConfigError
from harness.core.records import Chunk


def day(text: str) -> date | None:
    """The day of an ISO date, with or without a time; None where it is none."""
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def now_problem(now: str) -> str | None:
    """What is wrong with a `now`, or None."""
    return None if day(now) else f"now: expected a date such as 2026-01-31, got '{now}'"


def age_in_days(chunk: Chunk, now: str, step: str) -> int | None:
    """Days from the document's `date` to `now`, 0 where it lies ahead; None without a date.

    Raises ConfigError where the date is none.
    """
    given = chunk.metadata.get("date")
    if given in (None, ""):
        return None
    written, today = day(str(given)), day(now)
    if written is None or today is None:
        where = f"selector {step}: document '{chunk.doc}'"
        raise ConfigError(f"{where}: metadata.date must be a date such as 2026-01-31, got {given!r}")
    return max(0, (today - written).days)
