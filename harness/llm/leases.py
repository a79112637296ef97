"""Who is asking what: a question is claimed before it is asked, so that two launches do not both pay."""

import contextlib
import fcntl
import os
import sqlite3
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.storage.sqlite_file import SqliteFile, checksum


class Leases(SqliteFile):
    """Claims of questions, by the addresses of their answers.

    A claim holds while its owner holds a lock on a file of its own. The kernel releases that when the process dies,
    however it dies, so that a kill leaves nothing claimed.
    """

    TABLES: ClassVar = {"leases": ("address TEXT", "owner TEXT")}

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._owner = uuid.uuid4().hex
        self._lock: int | None = None

    def take(self, addresses: Sequence[str]) -> set[str]:
        """Claim what no living owner has claimed; gives what this one now has."""
        if self._lock is None:
            self._owners.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._owners / self._owner, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        wanted = list(dict.fromkeys(addresses))

        def work(db: sqlite3.Connection) -> set[str]:
            db.execute("BEGIN IMMEDIATE")  # two that look and then write would both find it free
            with db:
                others = self._others(db, wanted)
                mine = [address for address in wanted if address not in others]
                self.insert(db, "leases", [(address, self._owner) for address in mine], replace=True)
            return set(mine)

        return self.guarded(work)

    def _others(self, db: sqlite3.Connection, addresses: Sequence[str]) -> set[str]:
        """What living owners besides this one have claimed."""
        alive: dict[str, bool] = {self._owner: False}
        held = set()
        for start in range(0, len(addresses), self.BLOCK):
            block = addresses[start : start + self.BLOCK]
            marks = ",".join("?" * len(block))
            for address, owner, check in db.execute(f"SELECT * FROM leases WHERE address IN ({marks})", block):
                if owner not in alive:
                    alive[owner] = check == checksum((address, owner)) and self._alive(owner)
                if alive[owner]:
                    held.add(address)
        return held

    def release(self, addresses: Sequence[str]) -> None:
        """Give claims back: what was asked is answered by now, or has failed."""
        rows = [(address, self._owner) for address in addresses]
        self.write(lambda db: db.executemany("DELETE FROM leases WHERE address = ? AND owner = ?", rows))

    def close(self) -> None:
        """Give everything back."""
        if self._lock is not None:
            self.write(lambda db: db.execute("DELETE FROM leases WHERE owner = ?", (self._owner,)))
            (self._owners / self._owner).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None
        super().close()

    @property
    def _owners(self) -> Path:
        return self.path.with_suffix(".owners")

    def _alive(self, owner: str) -> bool:
        file = self._owners / Path(owner).name
        try:
            other = os.open(file, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        else:
            with contextlib.suppress(OSError):
                file.unlink()
            return False
        finally:
            os.close(other)
