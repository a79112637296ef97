"""Digests that identify content, and the canonical JSON text they are computed from."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """The canonical JSON text of a value: sorted keys, no spaces. Raises ValueError for NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The sha256 of `canonical(value)`, in hex."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
