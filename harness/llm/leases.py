"""Claims of questions: a question is claimed before it is asked, so that two launches do not both pay for it."""

import sqlite3
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.storage.locks import LivenessLock, is_alive
from harness.storage.sqlite_file import SqliteFile


class Leases(SqliteFile):
    """Claims of questions, by the addresses of their answers.

    A claim holds while its owner holds the lock on a file of its own. The system releases the lock when the process
    dies, so a killed process leaves no claims.
    """

    TABLES: ClassVar = {"leases": ("address TEXT", "owner TEXT")}

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._owner = uuid.uuid4().hex
        self._alive: LivenessLock | None = None

    def take(self, addresses: Sequence[str]) -> set[str]:
        """Claim the addresses that no living owner has claimed; return those that this owner now holds."""
        if self._alive is None:
            self._alive = LivenessLock(self._owners / self._owner)
        wanted = list(dict.fromkeys(addresses))

        def work(db: sqlite3.Connection) -> set[str]:
            db.execute("BEGIN IMMEDIATE")  # else two owners could both find an address free and claim it
            with db:
                others = self._others(db, wanted)
                mine = [address for address in wanted if address not in others]
                self.insert(db, "leases", [(address, self._owner) for address in mine], replace=True)
            return set(mine)

        return self.guarded(work)

    def _others(self, db: sqlite3.Connection, addresses: Sequence[str]) -> set[str]:
        """The addresses that other living owners have claimed."""
        alive: dict[str, bool] = {self._owner: False}
        held = set()
        for start in range(0, len(addresses), self.BLOCK):
            block = addresses[start : start + self.BLOCK]
            marks = ",".join("?" * len(block))
            for row in db.execute(f"SELECT * FROM leases WHERE address IN ({marks})", block):
                address, owner, _ = row
                if owner not in alive:
                    alive[owner] = self.tables.is_sound("leases", row) and is_alive(self._owners / Path(owner).name)
                if alive[owner]:
                    held.add(address)
        return held

    def release(self, addresses: Sequence[str]) -> None:
        """Release claims, after their questions have been answered or have failed."""
        rows = [(address, self._owner) for address in addresses]
        self.write(lambda db: db.executemany("DELETE FROM leases WHERE address = ? AND owner = ?", rows))

    def close(self) -> None:
        """Release all claims and close the file."""
        if self._alive is not None:
            self.write(lambda db: db.execute("DELETE FROM leases WHERE owner = ?", (self._owner,)))
            self._alive.close()
            self._alive = None
        super().close()

    @property
    def _owners(self) -> Path:
        return self.path.with_suffix(".owners")
