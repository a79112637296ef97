"""How long kinds of work took on this machine, kept in the store to estimate how long a launch will take."""

from pathlib import Path

from harness.storage.sealed import read_sealed, write_sealed

FORMAT = 1
"""Version of the format of `paces.json`."""

_KEPT = 0.5
"""The weight of earlier launches: machines change, and so do the texts that are embedded."""


class Paces:
    """Seconds per unit of work, by kind, from earlier launches on this store and from this one."""

    def __init__(self, store: Path) -> None:
        self._path = store / "paces.json"
        self._known: dict[str, tuple[float, float]] | None = None
        self._new: dict[str, tuple[float, float]] = {}

    def seconds(self, kind: str, units: float) -> float | None:
        """Return how long so many units of a kind take; None if none was measured."""
        if self._known is None:
            found = read_sealed(self._path, FORMAT)
            self._known = {name: (float(pair[0]), float(pair[1])) for name, pair in (found or {}).items()}
        amount, seconds = self._new.get(kind) or self._known.get(kind) or (0.0, 0.0)
        return units * seconds / amount if amount else None

    def note(self, kind: str, units: float, seconds: float) -> None:
        """Note how long so many units of a kind took."""
        if units > 0:
            amount, before = self._new.get(kind, (0.0, 0.0))
            self._new[kind] = (amount + units, before + seconds)

    def save(self) -> None:
        """Add what was noted to the store. Raises StoreError if it cannot be written."""
        if not self._new:
            return
        self.seconds("", 0)
        known = dict(self._known or {})
        for kind, (units, seconds) in self._new.items():
            amount, before = known.get(kind, (0.0, 0.0))
            # No more weight than this launch has, so that one long launch does not fix the pace for ever.
            weight = min(_KEPT, units / amount) if amount else 0.0
            known[kind] = (units + weight * amount, seconds + weight * before)
        write_sealed(self._path, {kind: list(pair) for kind, pair in known.items()}, FORMAT)
