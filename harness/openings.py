"""The locked query set: who opened it and how often, counted by content, whatever becomes of the launch."""

from pathlib import Path

from harness.session import Session
from harness.store import explained, locked


def open_locked_set(session: Session, launch_id: str) -> None:
    """Write down that a final launch opens the locked set, before the first score is seen."""
    record = _record(session)
    if record is None or not session.final:
        return
    with (
        explained(session.store),
        locked(session.store / "openings" / "lock"),
        record.open("a", encoding="utf-8") as file,
    ):
        file.write(f"{launch_id} {session.experiment.name}\n")


def openings(session: Session) -> list[str]:
    """The launches that have opened the locked set of the session's data, from this store: id and experiment."""
    record = _record(session)
    return record.read_text(encoding="utf-8").splitlines() if record is not None and record.is_file() else []


def _record(session: Session) -> Path | None:
    locked_sets = [pinned for pinned in session.manifest.queries.values() if pinned.locked]
    if len(locked_sets) != 1:
        return None  # `final` needs exactly one, which the session has checked
    return session.store / "openings" / f"{locked_sets[0].sha256}.txt"
