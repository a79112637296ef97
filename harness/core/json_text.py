"""JSON without duplicate keys, and records as values that JSON can represent."""

import math
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


def plain(value: Any) -> Any:
    """Return nested dicts and lists; named tuples become dicts, and floats that are not finite become None."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
