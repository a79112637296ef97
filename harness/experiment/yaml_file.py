"""Reads an experiment file: from YAML to an Experiment, with errors that name the file and the key."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from harness.components.component import step_labels
from harness.components.roles import judge_measures
from harness.core.errors import ConfigError, did_you_mean
from harness.core.secrecy import reveals
from harness.core.strict_yaml import load_yaml
from harness.evaluation.facts import FACTS
from harness.evaluation.metrics import is_metric, parse_metric
from harness.experiment.experiment import TRACES, Experiment
from harness.experiment.params import param_text
from harness.experiment.parsing import slot_value
from harness.experiment.published import KAPPAS, Published, PublishedRow
from harness.experiment.reader_price import Reader
from harness.experiment.settings import Compare, Gate
from harness.experiment.tags import checked_tags
from harness.experiment.trial import Trial, trial_of
from harness.experiment.trial_names import SLOTS
from harness.experiment.yaml_lines import explained, with_lines

_KEYS = (
    *("name", "question", "notes", "tags", "data", "queries", "tokenizer", "evidence", *SLOTS),
    *("metrics", "judges", "reader", "grid", "compare", "gate", "published", "traces"),
)
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def read_experiment(path: Path | str) -> Experiment:
    """The experiment of a YAML file. Raises ConfigError that names the file and the invalid key."""
    path = Path(path)
    with with_lines(path):
        return _experiment(path, _parse(path))


def _experiment(path: Path, content: dict[str, Any]) -> Experiment:
    where = path.name
    for key in content:
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key '{key}'.{did_you_mean(str(key), _KEYS)} Keys: {', '.join(_KEYS)}")
    for key in ("name", "data"):
        if not isinstance(content.get(key), str) or not content[key].strip():
            raise ConfigError(
                f"{where}: {key}: expected text, "
                + ("got " + repr(content[key]) if key in content else "but it is missing")
            )
    for key in ("question", "notes", "queries", "tokenizer"):
        if key in content and not isinstance(content[key], str):
            raise ConfigError(f"{where}: {key}: expected text, got {content[key]!r}")
    grid = _grid(content.get("grid"), where, path.parent)
    base = {
        key: content[key] for key in ("data", "queries", "tokenizer", *SLOTS, "metrics", "judges") if key in content
    }
    base |= _evidence(content.get("evidence"), where)
    for slot in ("chunker", "retriever"):
        if slot not in base:
            first = [product[slot][0] for product in grid if slot in product]
            if len(first) < max(1, len(grid)):
                raise ConfigError(f"{where}: {slot}: is missing; name one here or in every part of the grid")
            base[slot] = first[0]
    trial = trial_of(base, where=f"{where}:", base_dir=path.parent)
    measures = _Measures(tuple(judge_measures(trial.judges)), tuple(metric.name() for metric in trial.own_metrics))
    compare = _compare(content.get("compare"), where, measures)
    return Experiment(
        content["name"],
        trial,
        grid,
        content.get("question", ""),
        compare,
        path.parent.resolve(),
        where,
        reader=_reader(content.get("reader"), where),
        gate=_gate(content.get("gate"), where, measures),
        notes=content.get("notes", ""),
        tags=_tags(content.get("tags"), where),
        traces=_traces(content.get("traces", TRACES), where),
        published=_published(content.get("published"), where, path.parent, trial, measures),
    )


def _traces(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"{where}: traces: expected a number of queries, 0 for none, got {value!r}")
    return value


def _parse(path: Path) -> dict[str, Any]:
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name an experiment file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path.name}{line}: {explained(error)}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name}: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path.name}: expected a mapping with the keys {', '.join(_KEYS)}")
    filled = _substituted(content, path.name, "")
    assert isinstance(filled, dict)
    return filled


def _substituted(value: Any, where: str, key: str) -> Any:
    """`value` with `${NAME}` and `${NAME:-default}` replaced from the environment in every text."""
    if isinstance(value, dict):
        return {
            name: _substituted(inner, where, f"{key}.{name}" if key else str(name)) for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_substituted(inner, where, f"{key}[{at}]") for at, inner in enumerate(value)]
    if not isinstance(value, str):
        return value
    if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ConfigError(f"{where}: {key}: contains half a surrogate pair; remove it")
    if "\0" in value:
        raise ConfigError(f"{where}: {key}: contains a NUL character; remove it")

    def replacement(match: re.Match[str]) -> str:
        found = os.environ.get(match["name"], match["default"])
        if found is None:
            raise ConfigError(
                f"{where}: {key}: the environment variable {match['name']} is not set; set it or write "
                f"${{{match['name']}:-default}}"
            )
        return found

    filled = _VARIABLE.sub(replacement, value)
    if reveals(filled):
        raise ConfigError(
            f"{where}: {key}: contains a key or password from the environment, which would be logged; remove it: "
            "OPENAI_API_KEY is sent to servers automatically"
        )
    return filled


def _grid(value: Any, where: str, base_dir: Path) -> list[Mapping[str, list[Any]]]:
    if value is None:
        return []
    products = value if isinstance(value, list) else [value]
    parsed: list[Mapping[str, list[Any]]] = []
    for at, product in enumerate(products):
        place = f"{where}: grid[{at}]" if isinstance(value, list) else f"{where}: grid"
        if not isinstance(product, dict) or not product:
            raise ConfigError(f"{place}: expected a mapping of slots or dotted settings to lists of values")
        parsed.append(
            {str(axis): _axis(str(axis), values, f"{place}.{axis}", base_dir) for axis, values in product.items()}
        )
    return parsed


def _axis(axis: str, values: Any, where: str, base_dir: Path) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise ConfigError(f"{where}: expected a list of values, got {values!r}")
    if axis not in SLOTS:
        return values
    return [slot_value(axis, spec, where=f"{where}[{at}]", base_dir=base_dir) for at, spec in enumerate(values)]


def _evidence(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    _require_keys(value, ("coverage", "copies", "relevant_from", "unanswerable"), f"{where}: evidence")
    return dict(value)


def _tags(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict | None):
        raise ConfigError(f"{where}: tags: expected a mapping of names to values, got {value!r:.60}")
    return checked_tags(value or {}, f"{where}: tags")


def _reader(value: Any, where: str) -> Reader | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not set(value) <= {"model", "price"}:
        raise ConfigError(f"{where}: reader: expected a mapping with the keys model or price")
    model, price = value.get("model", ""), value.get("price")
    if not isinstance(model, str) or isinstance(price, bool) or not isinstance(price, int | float | None):
        raise ConfigError(f"{where}: reader: expected a model by name, or a price as a number")
    try:
        return Reader(model, price)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


class _Measures(NamedTuple):
    """The measures of the judges, and the names of the researcher's own metrics."""

    judged: tuple[str, ...]
    own: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.judged or is_metric(name, self.own))


def _compare(value: Any, where: str, measures: _Measures) -> Compare:
    if value is None:
        return Compare()
    _require_keys(value, [f.name for f in fields(Compare) if f.name != "further"], f"{where}: compare")
    baseline, on, show = value.get("baseline", {}), value.get("on"), value.get("show", [])
    baselines = baseline if isinstance(baseline, list) else [baseline]
    if not baselines or not all(isinstance(one, dict) and (one or one is baseline) for one in baselines):
        expected = "expected a mapping of params, such as {chunker: fixed}, or a list of those"
        raise ConfigError(f"{where}: compare.baseline: {expected}")
    if on is not None:
        _require_metric(on, measures, f"{where}: compare.on")
    if not isinstance(show, list) or not all(isinstance(name, str) for name in show):
        raise ConfigError(f"{where}: compare.show: expected a list of metrics and facts, such as index_bytes")
    for name in show:
        if not (name in measures or name in FACTS or name.startswith("step_")):
            close = did_you_mean(name, (*FACTS, *measures.judged, *measures.own))
            raise ConfigError(f"{where}: compare.show: '{name}' is not a metric.{close} Facts: {', '.join(FACTS)}")
    first, *further = [{str(key): param_text(wanted) for key, wanted in one.items()} for one in baselines]
    try:
        return Compare(**{**value, "baseline": first, "further": tuple(further), "on": on, "show": tuple(show)})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _gate(value: Any, where: str, measures: _Measures) -> Gate:
    if value is None:
        return Gate()
    _require_keys(value, [f.name for f in fields(Gate)], f"{where}: gate")
    margins = value.get("margins", {})
    if not isinstance(margins, dict):
        raise ConfigError(f"{where}: gate.margins: expected a mapping of metrics, such as {{recall@1000t: 0.02}}")
    for metric in margins:
        _require_metric(metric, measures, f"{where}: gate.margins")
    try:
        return Gate(**value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _published(value: Any, where: str, base_dir: Path, trial: Trial, measures: _Measures) -> Published | None:
    if value is None:
        return None
    place = f"{where}: published"
    _require_keys(value, ("source", "tolerance", "scale", "people", "rows"), place)
    source, rows = value.get("source"), value.get("rows")
    if not isinstance(source, str) or not isinstance(rows, list) or not rows:
        raise ConfigError(f"{place}: expected `source`, the source of the figures, and a list of `rows`")
    tolerance, scale, people = value.get("tolerance"), value.get("scale", 1), value.get("people", "")
    for key, number in (("tolerance", tolerance), ("scale", scale)):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < math.inf:
            raise ConfigError(f"{place}.{key}: expected a number above 0, got {number!r}")
    if not isinstance(people, str):
        raise ConfigError(f"{place}.people: expected the file of human labels, got {people!r}")
    judges = step_labels(trial.judges)
    made = tuple(
        _published_row(row, f"{place}.rows[{at}]", float(scale or 1), judges, measures) for at, row in enumerate(rows)
    )
    if any(row.judge for row in made) and not people:
        raise ConfigError(f"{place}.people: name the file of human labels that judges are compared with")
    return Published(source, made, float(tolerance or 0), str((base_dir / people).resolve()) if people else "")


def _published_row(row: Any, place: str, scale: float, judges: Sequence[str], measures: _Measures) -> PublishedRow:
    _require_keys(row, ("trial", "judge", "values", "differs"), place)
    values, params, judge, differs = (
        row.get("values"),
        row.get("trial", {}),
        row.get("judge", ""),
        row.get("differs", ""),
    )
    if not isinstance(values, dict) or not values or not isinstance(params, dict) or not isinstance(differs, str):
        raise ConfigError(f"{place}: expected `values` by metric, with `trial`, its params, or `judge`, its name")
    if judge and judge not in judges:
        known = ", ".join(judges) or "none"
        raise ConfigError(f"{place}.judge: no judge '{judge}'.{did_you_mean(str(judge), judges)} Judges: {known}")
    for name, number in values.items():
        known_names = KAPPAS if judge else (name,) if name in FACTS or is_metric(str(name), measures.own) else ()
        if name not in known_names:
            message = " or ".join(KAPPAS) if judge else "a metric"
            raise ConfigError(f"{place}.values: expected {message}, got '{name}'")
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ConfigError(f"{place}.values.{name}: expected a number, got {number!r}")
    kept = {str(name): float(number) / (1 if name in FACTS else scale) for name, number in values.items()}
    return PublishedRow(kept, {str(key): param_text(wanted) for key, wanted in params.items()}, str(judge), differs)


def _require_keys(value: Any, keys: Sequence[str], where: str) -> None:
    """Raise ConfigError if `value` is not a mapping with only these keys."""
    if not isinstance(value, dict) or not set(value) <= set(keys):
        raise ConfigError(f"{where}: expected a mapping with the keys {', '.join(keys)}")


def _require_metric(name: Any, measures: _Measures, where: str) -> None:
    """Raise ConfigError if `name` is neither a metric nor a judge's measure."""
    if not isinstance(name, str):
        raise ConfigError(f"{where}: expected a metric, got {name!r}")
    if name in measures.judged:
        return
    try:
        parse_metric(name, measures.own)
    except ConfigError as error:
        known = f"; judge measures: {', '.join(measures.judged)}" if measures.judged else ""
        raise ConfigError(f"{where}: {error}{known}") from None
