"""The record of accesses to the locked query set. It is kept by the set's hash, and failed launches count too."""

import os
from pathlib import Path

from harness.running.session import Session
from harness.storage.bucket import Bucket, bucket_of
from harness.storage.files import explained
from harness.storage.locks import locked
from harness.storage.sqlite_tables import checksum


def open_locked_set(session: Session, launch_id: str) -> None:
    """Record that a final launch opens the locked set, before any score is computed. No-op for other launches."""
    record = _record(session)
    if record is None or not session.final:
        return
    with explained(session.store), locked(session.store / "openings" / "lock"):
        access, bucket = f"{launch_id} {session.experiment.name!r}", bucket_of(session.store)
        if bucket is not None:
            _fetch(bucket, record)
        _append(record, access)
        if bucket is not None:
            bucket.create(f"openings/{record.stem}/{launch_id}", access.encode())


def test_set_accesses(session: Session) -> list[str]:
    """Return the launches that have opened the locked set of the session's data, as lines of id and experiment.

    Only launches on this store are known; in a bucket, those of all machines.
    """
    record = _record(session)
    if record is None:
        return []
    bucket = bucket_of(session.store)
    if bucket is not None:
        with explained(session.store), locked(session.store / "openings" / "lock"):
            _fetch(bucket, record)
    return _read(record)


def _fetch(bucket: Bucket, record: Path) -> None:
    """Add the accesses of other machines, which are objects in the bucket, to the record."""
    known = {line.partition(" ")[0] for line in _read(record)}
    for entry in list(bucket.entries(f"openings/{record.stem}/")):
        content = bucket.get(entry.name)
        if content is not None and entry.name.rpartition("/")[2] not in known:
            _append(record, content.decode("utf-8", "replace"))


def _append(record: Path, access: str) -> None:
    message = f"{len(_read(record)) + 1} {access}"
    with record.open("a", encoding="utf-8") as file:
        file.write(f"{message} {checksum((message,))}\n")
        file.flush()
        os.fsync(file.fileno())


def _read(record: Path) -> list[str]:
    """One line per access. An access whose line is damaged or missing still counts."""
    try:
        lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    found: dict[int, str] = {}
    damaged = 0
    for at, line in enumerate(lines, 1):
        entry, _, check = line.rpartition(" ")
        number, _, rest = entry.partition(" ")
        if check == str(checksum((entry,))) and number.isdigit():
            found[int(number)] = rest
        elif " " in line and line.count(" ") == 1 and line[:8].isdigit():
            found[at] = line  # the format before lines had numbers and checksums
        else:
            damaged += 1
    count = max([len(found) + damaged, *found])
    return [found.get(number, "(the record of this access is damaged)") for number in range(1, count + 1)]


def _record(session: Session) -> Path | None:
    locked_sets = [pinned for pinned in session.manifest.queries.values() if pinned.locked]
    if len(locked_sets) != 1:
        return None  # a final launch has exactly one, which the session has checked
    return session.store / "openings" / f"{locked_sets[0].sha256}.txt"
