"""What kinds of work took, in seconds or bytes: kept in the store, to estimate what a launch will take."""

from pathlib import Path

from harness.storage.sealed import read_sealed, write_sealed

FORMAT = 1
"""Version of the format of `paces.json`."""

_KEPT = 0.5
"""The weight of earlier launches: machines change, and so do the texts that are embedded."""


class Paces:
    """Seconds or bytes per unit of work, by kind, from earlier launches on this store and from this one."""

    def __init__(self, store: Path) -> None:
        self._path = store / "paces.json"
        self._known: dict[str, tuple[float, float]] | None = None
        self._new: dict[str, tuple[float, float]] = {}

    def expected(self, kind: str, units: float) -> float | None:
        """Return what so many units of a kind take; None if none was measured."""
        if self._known is None:
            found = read_sealed(self._path, FORMAT)
            self._known = {name: (float(pair[0]), float(pair[1])) for name, pair in (found or {}).items()}
        amount, taken = self._new.get(kind) or self._known.get(kind) or (0.0, 0.0)
        return units * taken / amount if amount else None

    def note(self, kind: str, units: float, taken: float) -> None:
        """Note what so many units of a kind took."""
        if units > 0:
            amount, before = self._new.get(kind, (0.0, 0.0))
            self._new[kind] = (amount + units, before + taken)

    @property
    def noted(self) -> dict[str, float]:
        """What a unit of each kind took that was noted since the store was read."""
        return {kind: taken / amount for kind, (amount, taken) in self._new.items()}

    def save(self) -> None:
        """Add what was noted to the store. Raises StoreError if it cannot be written."""
        if not self._new:
            return
        self.expected("", 0)
        known = dict(self._known or {})
        for kind, (units, taken) in self._new.items():
            amount, before = known.get(kind, (0.0, 0.0))
            # No more weight than this launch has, so that one long launch does not fix the pace for ever.
            weight = min(_KEPT, units / amount) if amount else 0.0
            known[kind] = (units + weight * amount, taken + weight * before)
        write_sealed(self._path, {kind: list(pair) for kind, pair in known.items()}, FORMAT)
