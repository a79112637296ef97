"""The form an answer must have: one declaration gives the JSON schema to ask with and the reader that checks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.core.characters import well_formed_json
from harness.core.json_text import RepeatedKeyError, keys_once
from harness.llm.answers import Failure

Entry = Mapping[str, Any]
"""What was said about one slot, by field."""


class Field(Protocol):
    """One field of an entry. `read` gives the value, or raises ValueError telling what would be right."""

    def schema(self) -> dict[str, Any]: ...

    def read(self, value: Any) -> Any: ...


@dataclass(frozen=True)
class Choice:
    """Exactly one of `options`, all integers or all texts; `true`, `2.0` and `"2"` are not the integer 2."""

    options: tuple[int, ...] | tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        kind = "integer" if isinstance(self.options[0], int) else "string"
        return {"type": kind, "enum": list(self.options)}

    def read(self, value: Any) -> Any:
        if type(value) is not type(self.options[0]) or value not in self.options:
            raise ValueError(f"{json.dumps(value)[:40]} is none of {', '.join(map(str, self.options))}")
        return value


@dataclass(frozen=True)
class Text:
    """A text; beyond `limit` characters it is cut."""

    limit: int = 400

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{json.dumps(value)[:40]} is no text")
        # Half a surrogate pair, which JSON can write, could be neither stored nor shown.
        return value[: self.limit].encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class ListOf:
    """A list of at most `max_items` fields of one kind."""

    of: Field
    max_items: int = 50

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.of.schema()}

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > self.max_items:
            raise ValueError(f"expected a list of at most {self.max_items}")
        return tuple(self.of.read(item) for item in value)


@dataclass(frozen=True)
class Reading:
    """An answer read: entries of the slots that are in order, and what is wrong with each of the others."""

    entries: Mapping[str, Entry]
    bad: Mapping[str, Failure]


@dataclass(frozen=True)
class AnswerSchema:
    """An object with one required entry per slot, each entry an object with the same required fields.

    A required property per slot makes it impossible for a model bound to the schema to leave one out, and telling for
    one that is not.
    """

    fields: tuple[tuple[str, Field], ...]

    def json_schema(self, slots: Sequence[str]) -> dict[str, Any]:
        """The JSON Schema, within what strict modes allow."""
        return _object({slot: _object({name: field.schema() for name, field in self.fields}) for slot in slots})

    def read(self, content: str, slots: Sequence[str]) -> Reading:
        """The entries in an answer. What is not wholly in order is never guessed at."""
        try:
            answer = _parsed(content)
        except _SchemaError as fault:
            return Reading({}, dict.fromkeys(slots, fault.failure))
        strangers = sorted(set(answer) - set(slots))
        if strangers:
            text = Failure("extra_label", f"an entry for {', '.join(strangers)[:80]}, which was not asked about")
            return Reading({}, dict.fromkeys(slots, text))
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
    """The object an answer consists of. Thoughts before it and a code fence around it are taken off, nothing else."""
    bare = _unfenced(_thoughtless(content).strip())
    try:
        answer = json.loads(bare, object_pairs_hook=keys_once, parse_constant=_no_constant)
        answer = well_formed_json(answer)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RepeatedKeyError):
            raise _SchemaError(Failure("schema", str(error))) from None
        message = f"not JSON: {bare[:60]!r}" if bare else "an empty answer"
        raise _SchemaError(Failure("invalid_json", message)) from None
    if not isinstance(answer, dict):
        raise _SchemaError(Failure("schema", f"expected an object, got {type(answer).__name__}"))
    return answer


def _thoughtless(content: str) -> str:
    """What follows the thoughts that a model puts before its answer, with or without their opening mark."""
    thoughts, mark, rest = content.partition("</think>")
    return rest if mark and "<think>" not in thoughts.lstrip().removeprefix("<think>") else content


def _unfenced(content: str) -> str:
    """What a Markdown code fence holds; all of it where there is none."""
    head, line_end, rest = content.partition("\n")
    whole = head.rstrip(" \t") in ("```", "```json") and line_end and rest.endswith("```")
    return rest[:-3].removesuffix("\n") if whole else content


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
