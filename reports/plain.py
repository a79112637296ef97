"""Records as JSON takes them."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """Mappings, named tuples and lists all the way down; what is not a finite number becomes None."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
