"""Answer schemas: one declaration yields both the JSON Schema sent to the model and the parser of its answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.core.characters import well_formed_json
from harness.core.json_text import RepeatedKeyError, keys_once
from harness.llm.answers import Failure

Entry = Mapping[str, Any]
"""The answer for one slot: values by field name."""


class Field(Protocol):
    """One field of an entry."""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the field."""

    def read(self, value: Any) -> Any:
        """The checked value. Raises ValueError, saying what is expected, if it is invalid."""


@dataclass(frozen=True)
class Choice:
    """One of `options`, all integers or all strings; `true`, `2.0` and `"2"` do not count as the integer 2."""

    options: tuple[int, ...] | tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        """A JSON Schema `enum`."""
        kind = "integer" if isinstance(self.options[0], int) else "string"
        return {"type": kind, "enum": list(self.options)}

    def read(self, value: Any) -> Any:
        """The value. Raises ValueError if it is not one of the options."""
        if type(value) is not type(self.options[0]) or value not in self.options:
            raise ValueError(f"{json.dumps(value)[:40]} is not one of {', '.join(map(str, self.options))}")
        return value


@dataclass(frozen=True)
class Text:
    """A string, truncated to `limit` characters."""

    limit: int = 400

    def schema(self) -> dict[str, Any]:
        """A JSON Schema `string`."""
        return {"type": "string"}

    def read(self, value: Any) -> str:
        """The truncated string. Raises ValueError if the value is not a string."""
        if not isinstance(value, str):
            raise ValueError(f"{json.dumps(value)[:40]} is not a string")
        # JSON can encode a lone surrogate, which can be neither stored nor printed.
        return value[: self.limit].encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class ListOf:
    """A list of at most `max_items` values of the field `of`."""

    of: Field
    max_items: int = 50

    def schema(self) -> dict[str, Any]:
        """A JSON Schema `array`."""
        return {"type": "array", "items": self.of.schema()}

    def read(self, value: Any) -> tuple[Any, ...]:
        """The checked values. Raises ValueError if the value is not a list, is too long or holds an invalid item."""
        if not isinstance(value, list) or len(value) > self.max_items:
            raise ValueError(f"expected a list of at most {self.max_items} items")
        return tuple(self.of.read(item) for item in value)


@dataclass(frozen=True)
class Reading:
    """A parsed answer: the valid entries by slot, and a failure for each of the other slots."""

    entries: Mapping[str, Entry]
    bad: Mapping[str, Failure]


@dataclass(frozen=True)
class AnswerSchema:
    """The schema of an answer: an object with one required entry per slot, each with the same required fields.

    As every slot is a required property, a model that follows the schema cannot leave one out. From other models, a
    missing slot is detected.
    """

    fields: tuple[tuple[str, Field], ...]

    def json_schema(self, slots: Sequence[str]) -> dict[str, Any]:
        """The JSON Schema for these slots, limited to the features that strict modes support."""
        return _object({slot: _object({name: field.schema() for name, field in self.fields}) for slot in slots})

    def read(self, content: str, slots: Sequence[str]) -> Reading:
        """Parse an answer. Invalid entries become failures; they are never repaired by guessing."""
        try:
            answer = _parsed(content)
        except _SchemaError as fault:
            return Reading({}, dict.fromkeys(slots, fault.failure))
        unknown = sorted(set(answer) - set(slots))
        if unknown:
            failure = Failure("extra_label", f"unexpected entry for {', '.join(unknown)[:80]}")
            return Reading({}, dict.fromkeys(slots, failure))
        entries: dict[str, Entry] = {}
        bad: dict[str, Failure] = {}
        for slot in slots:
            if slot not in answer:
                bad[slot] = Failure("missing_label", f"no entry for {slot}")
                continue
            try:
                entries[slot] = self._entry(answer[slot])
            except ValueError as error:
                bad[slot] = Failure("schema", f"{slot}: {error}")
        return Reading(entries, bad)

    def _entry(self, value: Any) -> Entry:
        names = [name for name, _ in self.fields]
        if not isinstance(value, dict) or set(value) != set(names):
            raise ValueError(f"expected an object with {', '.join(names)}")
        entry = {}
        for name, field in self.fields:
            try:
                entry[name] = field.read(value[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return entry


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class _SchemaError(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def _parsed(content: str) -> dict[str, Any]:
    """The JSON object of an answer, after removing only a leading <think> block and an enclosing code fence."""
    bare = _without_code_fence(_without_thinking(content).strip())
    try:
        answer = json.loads(bare, object_pairs_hook=keys_once, parse_constant=_no_constant)
        answer = well_formed_json(answer)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RepeatedKeyError):
            raise _SchemaError(Failure("schema", str(error))) from None
        message = f"not JSON: {bare[:60]!r}" if bare else "the answer is empty"
        raise _SchemaError(Failure("invalid_json", message)) from None
    if not isinstance(answer, dict):
        raise _SchemaError(Failure("schema", f"expected an object, got {type(answer).__name__}"))
    return answer


def _without_thinking(content: str) -> str:
    """The text after a leading <think> block, whose opening tag may be missing."""
    thoughts, tag, rest = content.partition("</think>")
    return rest if tag and "<think>" not in thoughts.lstrip().removeprefix("<think>") else content


def _without_code_fence(content: str) -> str:
    """The content of a Markdown code fence around the whole text; the text itself if there is none."""
    head, line_end, rest = content.partition("\n")
    enclosed = head.rstrip(" \t") in ("```", "```json") and line_end and rest.endswith("```")
    return rest[:-3].removesuffix("\n") if enclosed else content


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
