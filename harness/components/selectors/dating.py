"""The age of a document on a date set in the experiment; with the current date, runs would not be reproducible."""

from datetime import date, datetime

from harness.core.errors import ConfigError
from harness.core.records import Chunk


def day(text: str) -> date | None:
    """Parse an ISO date, with or without a time; None if it is not one."""
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


def now_problem(now: str) -> str | None:
    """An error message if `now` is not an ISO date, else None."""
    return None if day(now) else f"now: expected a date such as 2026-01-31, got '{now}'"


def age_in_days(chunk: Chunk, now: str, step: str) -> int | None:
    """Days from the document's `date` to `now`, 0 if the date is later; None without a date.

    Raises ConfigError if `date` is not an ISO date.
    """
    given = chunk.metadata.get("date")
    if given in (None, ""):
        return None
    written, today = day(str(given)), day(now)
    if written is None or today is None:
        where = f"selector {step}: document '{chunk.doc}'"
        raise ConfigError(f"{where}: metadata.date must be a date such as 2026-01-31, got {given!r}")
    return max(0, (today - written).days)
