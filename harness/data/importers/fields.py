"""Typed access to the values of a record; errors name the key."""

from collections.abc import Mapping
from typing import Any

from harness.core.text_files import Line


def text_of(line: Line, record: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """The text under a key; `default`, if given, for a missing or null value. Raises DataError if it is not text."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise line.fault(f"{key}: {'is missing' if key not in record else f'expected text, got {value!r:.60}'}")
    return value


def id_of(line: Line, record: Mapping[str, Any], *keys: str) -> str:
    """The id under the first of these keys in the record, as text. Raises DataError if it is not text or a number."""
    key = next((key for key in keys if key in record), None)
    if key is None:
        raise line.fault(f"no column {' or '.join(keys)}; columns: {', '.join(map(str, record))[:80]}")
    value = record[key]
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise line.fault(f"{key}: expected text, got {value!r:.60}")
    return str(value)


def list_of(line: Line, record: Mapping[str, Any], key: str) -> list[Any]:
    """The list under a key. Raises DataError if it is missing or not a list."""
    value = record.get(key)
    if not isinstance(value, list):
        raise line.fault(f"{key}: {'is missing' if key not in record else f'expected a list, got {value!r:.60}'}")
    return value


def whole_number(line: Line, value: Any, key: str) -> int:
    """A whole number, also if written as text or as a float without fraction. Raises DataError otherwise."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    elif isinstance(value, float) and value.is_integer():
        return int(value)
    raise line.fault(f"{key}: expected a whole number, got {value!r:.60}")


def object_of(line: Line, value: Any, what: str) -> dict[str, Any]:
    """The value itself, if it is a JSON object. Raises DataError otherwise."""
    if not isinstance(value, dict):
        raise line.fault(f"{what}: expected an object, got {value!r:.60}")
    return value
