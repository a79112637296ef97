"""JSON as people mean it: no key twice."""

from typing import Any


class RepeatedKeyError(ValueError):
    """An object names a key twice; the message says which."""


def keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys occur once, for `object_pairs_hook`: else the last of two would win in silence.

    Raises RepeatedKeyError.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise RepeatedKeyError(f"the key {name!r} occurs twice")
            seen.add(name)
    return made
