"""The record of a scheduled run of the regression gate, as a tracker keeps it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GATE_RECORD = "gate.json"
"""The name of its file."""

_FORMAT = 2
"""The version of its format that can be read."""


def gate_record(file: Path) -> Mapping[str, Any] | None:
    """Return the content of a record; None if it is gone, damaged, of another format, or of a run not compared."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    known = isinstance(record, dict) and record.get("format") == _FORMAT and "checks" in record
    return record if known else None
