"""The JSON Schema of an experiment file, for editors that complete and check YAML."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from harness.components.component import Component
from harness.components.selectors.presets import PRESETS
from harness.evaluation.facts import FACTS
from harness.evaluation.metrics import MEASURES
from harness.experiment.catalog import BUILTINS, describe
from harness.experiment.settings import CLUSTERS
from harness.experiment.trial_names import SLOTS

_REFERENCE = {"type": "string", "pattern": "^[^:]+(\\.py)?:[A-Za-z_][A-Za-z0-9_]*$", "description": "file.py:Class"}
_NUMBER = {"type": "number", "minimum": 0}
_TEXT = {"type": "string"}

_KEYS: Mapping[str, str] = {
    "name": "The name of the experiment, also in MLflow.",
    "question": "The research question, shown above the results.",
    "notes": "Notes in Markdown, shown with the launch in MLflow.",
    "tags": "Tags of the launch and its trials in MLflow, by name.",
    "data": "The data set: its name under datasets/, or its path.",
    "queries": "The query set, by default `validation`.",
    "tokenizer": "Counts tokens: o200k_base, cl100k_base, words, or a Hugging Face tokenizer.",
    "evidence": "How evidence is counted.",
    "chunker": "Cuts documents into chunks.",
    "augmenter": "Adds a context to each chunk, which is indexed with it.",
    "embedder": "Embeds texts.",
    "retriever": "Ranks chunks for a query.",
    "selector": "Steps, in order, from the ranking to the selected passages.",
    "metrics": "The metrics to compute, such as recall@5 (a rank) or recall@1000t (a token budget).",
    "judges": "Judges of the selected passages.",
    "reader": "The model that reads the passages, or its price, for the cost of a query.",
    "grid": "What varies: a mapping is a product, a list of mappings a union of products.",
    "compare": "How trials are compared.",
    "gate": "The limits of the regression gate.",
    "published": "Published figures to compare with.",
    "traces": "The most queries of the best trial and the baseline that become traces in MLflow: 200, 0 for none.",
}


def schema_text() -> str:
    """The schema as JSON text."""
    return json.dumps(experiment_schema(), indent=1, ensure_ascii=False) + "\n"


def experiment_schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) of an experiment file."""
    slots = {slot: {"$ref": f"#/$defs/{slot}"} for slot in SLOTS}
    axis = {slot: {"type": "array", "minItems": 1, "items": schema} for slot, schema in slots.items()}
    product = {
        "type": "object",
        "minProperties": 1,
        "properties": axis,
        "patternProperties": {f"^({'|'.join(SLOTS)})\\.": {"type": "array", "minItems": 1}},
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {
        **dict.fromkeys(("name", "question", "notes", "data", "queries", "tokenizer"), _TEXT),
        "tags": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
        "evidence": _record(
            coverage={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            copies={"enum": ["credit", "ignore"]},
            relevant_from=_NUMBER,
            unanswerable={"enum": ["skip", "zero"]},
        ),
        **slots,
        "metrics": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/metric"}},
        "judges": {"type": "array", "items": {"$ref": "#/$defs/judge"}},
        "reader": _record(model=_TEXT, price=_NUMBER),
        "grid": {"anyOf": [product, {"type": "array", "items": product}]},
        "compare": _record(
            baseline={"anyOf": [{"type": "object"}, {"type": "array", "minItems": 1, "items": {"type": "object"}}]},
            on=_TEXT,
            show={"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/metric"}, {"enum": list(FACTS)}, _TEXT]}},
            margin=_NUMBER,
            effect=_NUMBER,
            clusters={"enum": list(CLUSTERS)},
        ),
        "gate": _record(margins={"type": "object", "additionalProperties": _NUMBER}, alpha=_NUMBER),
        "published": {"type": "object"},
        "traces": {"type": "integer", "minimum": 0},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An experiment of the retrieval harness",
        "type": "object",
        "required": ["name", "data"],
        "properties": {key: {**properties[key], "description": text} for key, text in _KEYS.items()},
        "additionalProperties": False,
        "$defs": {**_definitions(), "metric": _metric()},
    }


def _record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _metric() -> dict[str, Any]:
    """A metric by name, with a rank or a budget, or a custom one."""
    names = [f"{name}@0.1" if measure.cutoff == "level" else name for name, measure in MEASURES.items()]
    pattern = f"^({'|'.join(MEASURES)})(@([0-9]+t?|[01]\\.[0-9]+))?$"
    own = {"type": "string", "pattern": "^[^:]+:[A-Za-z_][A-Za-z0-9_]*(@[0-9]+t?)?$"}
    return {"anyOf": [{"enum": names}, {"type": "string", "pattern": pattern}, own, {"type": "object"}]}


def _definitions() -> dict[str, Any]:
    """The components of each role; a selector is a step or a list of steps."""
    made = {role: {"anyOf": _components(role)} for role in (*SLOTS, "judge")}
    presets = [{"enum": ["none", *PRESETS]}, *(_one_key(name, _record(rerank={})) for name in PRESETS)]
    step = {"$ref": "#/$defs/step"}
    made["step"] = {"anyOf": [*made["selector"]["anyOf"], *presets]}
    return {**made, "selector": {"anyOf": [step, {"type": "array", "items": step}]}}


def _components(role: str) -> list[dict[str, Any]]:
    """A component of a role: a name, a name with settings, or a reference to a custom one."""
    names = {"enum": list(BUILTINS[role])}
    return [names, *(_settings(role, name, cls) for name, cls in BUILTINS[role].items()), _REFERENCE, _own()]


def _own() -> dict[str, Any]:
    """A custom component with settings."""
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "patternProperties": {":": {"type": ["object", "null"]}},
        "additionalProperties": False,
    }


def _settings(role: str, name: str, cls: type[Component]) -> dict[str, Any]:
    made = TypeAdapter(cls).json_schema(schema_generator=_Settings)
    definitions = made.pop("$defs", {})
    inlined = _inlined(made, definitions)
    defaults = {field.name for field in dataclasses.fields(cls) if field.default is not dataclasses.MISSING}  # type: ignore[arg-type]
    required = [key for key in inlined.get("required", ()) if key not in defaults]
    properties = {key: {k: v for k, v in value.items() if k != "title"} for key, value in inlined["properties"].items()}
    settings = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
    if required:
        settings |= {"type": "object", "required": required}
    return {**_one_key(name, settings), "description": describe(role, name).summary}


def _one_key(name: str, value: Any) -> dict[str, Any]:
    return {"type": "object", "required": [name], "properties": {name: value}, "additionalProperties": False}


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with its definitions in place of references to them."""
    if isinstance(value, list):
        return [_inlined(one, definitions) for one in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        found = definitions[value["$ref"].rpartition("/")[2]]
        return {**_inlined(found, definitions), **{key: inner for key, inner in value.items() if key != "$ref"}}
    return {key: _inlined(inner, definitions) for key, inner in value.items()}


class _Settings(GenerateJsonSchema):
    """Without warnings for defaults that JSON lacks: they are only shown."""

    ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012 - declared so by pydantic
