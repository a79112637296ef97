"""Conversion of records to values that JSON can represent."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """Returns nested dicts and lists; named tuples become dicts, and floats that are not finite become None."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
