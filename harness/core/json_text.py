"""JSON without duplicate keys."""

from typing import Any


class RepeatedKeyError(ValueError):
    """A JSON object has a key twice; the message names the key."""


def keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of a JSON object; pass it as `object_pairs_hook`. Raises RepeatedKeyError if a key occurs twice.

    The json module itself would silently keep the last value of a repeated key.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise RepeatedKeyError(f"the key {name!r} occurs twice")
            seen.add(name)
    return made
