"""An experiment: a base trial, a grid over it, and what to compare; from YAML or Python, to and from JSON."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

from harness.components.augmenters import NoContext
from harness.components.component import (
    ROLES,
    Augmenter,
    Chunker,
    Component,
    Embedder,
    EmbeddingChunker,
    Judge,
    Reranker,
    Retriever,
    Selector,
    identity,
    judge_measures,
    settings,
    snake_case,
    step_labels,
)
from harness.components.embedders import Local
from harness.components.selectors.presets import DEFAULT_RERANKER, PRESETS
from harness.core.errors import ConfigError, did_you_mean
from harness.data.manifest import Copies
from harness.evaluation.metrics import is_metric, parse_metric
from harness.experiment.catalog import BUILTINS, checked, component, to_spec
from harness.experiment.compatibility import check_steps
from harness.experiment.published import Published
from harness.experiment.reader_price import Reader
from harness.experiment.trial_names import SLOTS
from harness.storage.store import canonical, digest

CLUSTERS = ("documents", "queries")
MOST_TRIALS = 20_000
"""In one grid: more would take minutes to list, and nobody could compare them."""
Unanswerable = Literal["skip", "zero"]
METRICS = ("recall@5", "recall@1000t", "ndcg@10")


@dataclass(frozen=True)
class Trial:
    """One component per slot, the data it runs on, and how it is scored."""

    data: str
    chunker: Chunker
    retriever: Retriever
    queries: str = "validation"
    tokenizer: str = "o200k_base"
    augmenter: Augmenter = field(default_factory=NoContext)
    embedder: Embedder = field(default_factory=Local)
    selector: tuple[Selector, ...] = ()
    judges: tuple[Judge, ...] = ()
    metrics: tuple[str, ...] = METRICS
    coverage: float = 0.5
    copies: Copies | None = None
    """Whether verbatim copies of evidence count as evidence; None as the data set says."""
    relevant_from: float = 0.0
    """The grade from which on evidence counts as relevant; what lies below adds to graded gain alone."""
    unanswerable: Unanswerable = "skip"
    """Whether queries without relevant evidence are left out of means, or count as 0."""

    @property
    def embeds_queries(self) -> bool:
        """Whether the retriever, or a part of it, searches embeddings."""
        return any(part.uses_vectors for part in (self.retriever, *self.retriever.parts))

    @property
    def uses_vectors(self) -> bool:
        """Whether anything needs embeddings; else the embedder is no part of the trial."""
        compared = any(step.uses_vectors for step in self.selector)
        return self.embeds_queries or compared or isinstance(self.chunker, EmbeddingChunker)

    def identity(self) -> dict[str, Any]:
        """Everything in the file that decides the trial's results."""
        return {
            "data": self.data,
            "queries": self.queries,
            "tokenizer": self.tokenizer,
            "chunker": identity(self.chunker),
            "augmenter": identity(self.augmenter),
            "embedder": identity(self.embedder) if self.uses_vectors else None,
            "retriever": identity(self.retriever),
            "selector": [identity(step) for step in self.selector],
            "judges": [identity(judge) for judge in self.judges],
            "metrics": list(self.metrics),
            "coverage": self.coverage,
            "copies": self.copies,
            "relevant_from": self.relevant_from,
            "unanswerable": self.unanswerable,
        }

    def params(self) -> dict[str, str]:
        """The settings under their YAML paths, as MLflow params: `chunker`, `chunker.size`, `selector.top_k.k`."""
        params: dict[str, str] = {}
        for slot in SLOTS:
            if slot == "embedder" and not self.uses_vectors:
                params[slot] = "none"
            elif slot == "selector":
                labels = step_labels(self.selector)
                params[slot] = "+".join(step.name() for step in self.selector) or "none"
                for label, step in zip(labels, self.selector, strict=True):
                    params |= _flat(f"{slot}.{label}", settings(step))
            else:
                part: Component = getattr(self, slot)
                params[slot] = part.name()
                params |= _flat(slot, settings(part))
                params |= _depths(part)
        for label, judge in zip(step_labels(self.judges), self.judges, strict=True):
            params[f"judge.{label}"] = str(getattr(judge, "model", "no model"))
            params |= _flat(
                f"judge.{label}", {k: v for k, v in settings(judge).items() if v is not None and k != "model"}
            )
            params |= _flat(f"judge.{label}", {"version": judge.version, **judge.facts()})
        return params | {
            "data": self.data,
            "queries": self.queries,
            "tokenizer": self.tokenizer,
            "coverage": str(self.coverage),
            "copies": self.copies or "",
            "relevant_from": f"{self.relevant_from:g}",
            "unanswerable": self.unanswerable,
        }

    def to_json(self) -> str:
        """The trial as JSON text; `from_json` gives an equal trial in any process on this machine."""
        value: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in (*SLOTS, "judges"):
            part = value[name]
            value[name] = [to_spec(p) for p in part] if isinstance(part, tuple | list) else to_spec(part)
        return canonical(value)

    @classmethod
    def from_json(cls, text: str, *, where: str = "trial") -> "Trial":
        """The trial of `to_json`; `where` is named in faults."""
        return trial_of(json.loads(text), where=where, beside=Path("/"))


@dataclass(frozen=True)
class Compare:
    """What the comparison is about: a metric, the params of the baseline trial, and what else to show of each trial.

    `margin` is the difference that matters in practice (0: any), `effect` the one that "queries needed" is about.
    `clusters` are `documents` where the claim is about further documents and their questions, or `queries` where it is
    about further questions on these documents.
    """

    baseline: Mapping[str, str] = field(default_factory=dict)
    on: str | None = None
    show: tuple[str, ...] = ()
    margin: float = 0.0
    effect: float = 0.03
    clusters: str = "documents"

    def __post_init__(self) -> None:
        for name, least in (("margin", 0.0), ("effect", 1e-9)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
                raise ConfigError(f"compare.{name}: expected a difference such as 0.02, got {value!r}")
        if self.clusters not in CLUSTERS:
            raise ConfigError(f"compare.clusters: expected {' or '.join(CLUSTERS)}, got {self.clusters!r}")


@dataclass(frozen=True)
class Gate:
    """How far means may fall below the accepted baseline before the regression gate calls it worse.

    `margins` by metric, empty for 0.02 of the metric that trials are compared on. `alpha` is the chance that the gate
    calls any trial worse on any metric where nothing has changed.
    """

    margins: Mapping[str, float] = field(default_factory=dict)
    alpha: float = 0.05

    def __post_init__(self) -> None:
        for metric, margin in self.margins.items():
            if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < math.inf:
                raise ConfigError(f"gate.margins.{metric}: expected a difference such as 0.02, got {margin!r}")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 < self.alpha < 0.5:
            raise ConfigError(f"gate.alpha: expected a chance such as 0.05, got {self.alpha!r}")


@dataclass(frozen=True)
class Experiment:
    """A base trial and a grid: a mapping is a product of its axes, a list of mappings the union of products.

    An axis is a slot (`chunker`, values are components) or one setting (`selector.mmr.k`). `beside` is the folder that
    data sets and own components are looked for from.
    """

    name: str
    base: Trial
    grid: Sequence[Mapping[str, Sequence[Any]]] | Mapping[str, Sequence[Any]] = ()
    question: str = ""
    compare: Compare = field(default_factory=Compare)
    beside: Path = field(default_factory=Path.cwd)
    source: str = "python"
    fixed: tuple[Trial, ...] = ()
    """The trials themselves, where they are known instead of a grid."""
    named: tuple[str, ...] = ()
    """Their names, where these are not to be made of what varies among them."""
    chosen: str = ""
    """The trial that validation chose, where these are the finalists."""
    reader: Reader | None = None
    gate: Gate = field(default_factory=Gate)
    published: Published | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics asked for, those of the comparison, the gate and published figures included.

        Without the measures of judges.
        """
        held = self.published.metrics if self.published else ()
        named = (self.compare.on, *self.compare.show, *self.gate.margins, *held)
        wanted = (*self.base.metrics, *(name for name in named if name and is_metric(name)))
        return tuple(dict.fromkeys(name for name in wanted if name not in self.judged))

    @property
    def judged(self) -> tuple[str, ...]:
        """The measures of the judges."""
        return tuple(judge_measures(self.base.judges))

    def trials(self) -> list[Trial]:
        """The distinct trials of the grid, in order; a fault in any raises ConfigError before work starts."""
        products = [self.grid] if isinstance(self.grid, Mapping) else list(self.grid)
        size = sum(math.prod(len(values) for values in product.values()) for product in products)
        if size > MOST_TRIALS:
            raise ConfigError(f"{self.source}: grid: {size:,} combinations; a grid has {MOST_TRIALS:,} at most")
        expanded = self.fixed or [trial for product in products or [{}] for trial in self._product(product)]
        where = f"{self.source}: grid" if products and products != [{}] else f"{self.source}:"
        made = [replace(trial, metrics=self.metrics).to_json() for trial in expanded]
        checked_trials = [Trial.from_json(text, where=where) for text in made]
        distinct: dict[str, Trial] = {}
        for trial in checked_trials:
            distinct.setdefault(digest(trial.identity()), trial)
        return list(distinct.values())

    def _product(self, axes: Mapping[str, Sequence[Any]]) -> Iterable[Trial]:
        # Slots first: a dotted path speaks about the component that is then in its slot.
        order = sorted(axes, key=lambda axis: axis not in SLOTS)
        for values in itertools.product(*(axes[axis] for axis in order)):
            trial = self.base
            for axis, value in zip(order, values, strict=True):
                trial = _with(trial, axis, value, where=f"{self.source}: grid.{axis}")
            yield trial


def find_baseline(
    every: Sequence[Mapping[str, str]], wanted: Mapping[str, Any], where: str = "compare.baseline"
) -> int:
    """The first trial whose params have all the wanted values, by its number; raises ConfigError where there is none.

    A component may be named as in YAML (`my_chunkers.py:ByHeading`).
    """
    known = list(dict.fromkeys(key for params in every for key in params))
    asked = {key: param_text(value) for key, value in wanted.items()}
    for key, value in asked.items():
        if key not in known:
            close = did_you_mean(key, known)
            raise ConfigError(f"{where}: no param '{key}'.{close} Params: {', '.join(known)}")
        if key in SLOTS and ":" in value:
            asked[key] = snake_case(value.rpartition(":")[2])
    for at, params in enumerate(every):
        if all(params.get(key) == value for key, value in asked.items()):
            return at
    told = ", ".join(f"{key}: {value}" for key, value in asked.items())
    raise ConfigError(f"{where}: no trial has {told}")


def trial_of(content: Mapping[str, Any], *, where: str, beside: Path) -> Trial:
    """The trial of a mapping whose slots hold component specs; raises ConfigError."""
    given = dict(content)
    for slot in SLOTS:
        if slot in given:
            given[slot] = slot_value(slot, given[slot], where=_join(where, slot), beside=beside)
    listed = given.get("judges") or ()
    if not isinstance(listed, list | tuple):
        raise ConfigError(f"{_join(where, 'judges')}: expected a list")
    given["judges"] = tuple(
        component("judge", spec, where=f"{_join(where, 'judges')}[{at}]", beside=beside)
        for at, spec in enumerate(listed)
    )
    metrics = given.get("metrics", METRICS)
    if not isinstance(metrics, list | tuple) or not metrics or not all(isinstance(metric, str) for metric in metrics):
        raise ConfigError(f"{_join(where, 'metrics')}: expected a list of names such as recall@5")
    for at, metric in enumerate(metrics):
        try:
            parse_metric(metric)
        except ConfigError as error:
            raise ConfigError(f"{_join(where, 'metrics')}[{at}]: {error}") from None
    given["metrics"] = tuple(dict.fromkeys(metrics))
    coverage = given.get("coverage", 0.5)
    if isinstance(coverage, bool) or not isinstance(coverage, int | float) or not 0 < coverage <= 1:
        raise ConfigError(f"{_join(where, 'coverage')}: expected a number above 0 and at most 1, got {coverage!r}")
    given["coverage"] = float(coverage)
    retriever = given.get("retriever")
    if isinstance(retriever, Retriever):
        check_steps(retriever, given.get("selector", ()), given["judges"], _join(where, "selector"))
    if given.get("copies") not in (None, "credit", "ignore"):
        raise ConfigError(f"{_join(where, 'copies')}: expected credit or ignore, got {given['copies']!r}")
    grade = given.get("relevant_from", 0.0)
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= 1e6:
        raise ConfigError(f"{_join(where, 'relevant_from')}: expected a grade such as 2, got {grade!r}")
    given["relevant_from"] = float(grade)
    if given.get("unanswerable", "skip") not in ("skip", "zero"):
        raise ConfigError(f"{_join(where, 'unanswerable')}: expected skip or zero, got {given['unanswerable']!r}")
    return Trial(**given)


def slot_value(slot: str, spec: Any, *, where: str, beside: Path) -> Any:
    """What a slot holds: a component, or for the selector a tuple of steps."""
    if isinstance(spec, Component):
        if not isinstance(spec, ROLES[slot]):
            raise ConfigError(f"{where}: {spec!r} is not a {slot}")
        return (spec,) if slot == "selector" else spec
    if slot != "selector":
        return component(slot, spec, where=where, beside=beside)
    if spec is None or spec == "none":
        return ()
    specs = list(spec) if isinstance(spec, list | tuple) else [spec]
    places = [f"{where}[{at}]" if isinstance(spec, list | tuple) else where for at in range(len(specs))]
    return tuple(
        step for one, place in zip(specs, places, strict=True) for step in _steps(one, where=place, beside=beside)
    )


def _steps(spec: Any, *, where: str, beside: Path) -> tuple[Selector, ...]:
    """The steps a selector's spec stands for: one, or those of a preset."""
    if isinstance(spec, Selector):
        return (spec,)
    name = next(iter(spec), None) if isinstance(spec, dict) and len(spec) == 1 else spec
    if isinstance(name, str) and ":" not in name and name not in (*PRESETS, *BUILTINS["selector"]):
        known = [*BUILTINS["selector"], *PRESETS]
        told = f"no selector named '{name}'.{did_you_mean(name, known)} Built in: {', '.join(known)}"
        raise ConfigError(f"{where}: {told}; your own: file.py:Class")
    if not isinstance(name, str) or name not in PRESETS:
        return (cast(Selector, component("selector", spec, where=where, beside=beside)),)
    given = spec[name] or {} if isinstance(spec, dict) else {}
    if not isinstance(given, dict) or not set(given) <= {"rerank"}:
        raise ConfigError(f"{where}: {name}: expected nothing, or `rerank` with a reranker or none")
    if "rerank" not in given:
        return PRESETS[name].steps(DEFAULT_RERANKER)
    if given["rerank"] in (None, "none"):
        return PRESETS[name].steps(None)
    reranker = component("selector", given["rerank"], where=f"{where}.{name}.rerank", beside=beside)
    if not isinstance(reranker, Reranker):
        raise ConfigError(f"{where}.{name}.rerank: {reranker.name()} is no reranker")
    return PRESETS[name].steps(reranker)


def _join(where: str, key: str) -> str:
    """`file.yaml: key` at the top of a file, `place.key` inside it."""
    return f"{where} {key}" if where.endswith(":") else f"{where}.{key}"


def param_text(value: Any) -> str:
    """A setting as it reads among the params: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _flat(prefix: str, values: Mapping[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(f"{prefix}.{key}", value)
        else:
            flat[f"{prefix}.{key}"] = param_text(value)
    return flat


def _depths(part: Component) -> dict[str, str]:
    """How deep the parts of a fusion search: as deep as it asks, whatever they would alone."""
    if not isinstance(part, Retriever) or not part.parts:
        return {}
    names = [f.name for f in fields(part) if isinstance(getattr(part, f.name), Retriever)]  # type: ignore[arg-type]
    return {f"retriever.{name}.depth": str(inner.depth) for name, inner in zip(names, part.parts, strict=False)}


def _with(trial: Trial, axis: str, value: Any, *, where: str) -> Trial:
    """The trial with one axis of the grid set."""
    slot, *path = axis.split(".")
    if slot == "judges":
        raise ConfigError(f"{where}: all trials have the same judges; list each under `judges:` instead")
    if slot not in SLOTS:
        raise ConfigError(f"{where}: no slot named '{slot}'.{did_you_mean(slot, SLOTS)} Slots: {', '.join(SLOTS)}")
    if not path:
        return replace(trial, **{slot: slot_value(slot, value, where=where, beside=Path.cwd())})
    held: Any = getattr(trial, slot)
    parts = cast("tuple[Component, ...]", held if isinstance(held, tuple) else (held,))
    labels = step_labels(held) if isinstance(held, tuple) else [held.name()]
    routes = [(at, route) for at, part in enumerate(parts) if (route := _route(part, labels[at], path))]
    if len(routes) != 1:
        if routes:
            named = f"{slot}.{labels[routes[-1][0]]}.{path[-1]}"
            raise ConfigError(f"{where}: several steps have it; name one, such as {named}")
        if isinstance(held, tuple) and len(path) > 1 and path[0] not in labels:
            told = f"the selector has no step '{path[0]}'.{did_you_mean(path[0], labels)} Steps: {', '.join(labels)}"
            raise ConfigError(f"{where}: {told or 'none'}; write `grid` as a list to vary what only some trials have")
        known = [key for part in parts for key in settings(part)]
        raise ConfigError(
            f"{where}: {'+'.join(labels) or 'none'} has no setting '{'.'.join(path)}'.{did_you_mean(path[-1], known)}"
            f" Settings: {', '.join(known) or 'none'}; write `grid` as a list to vary what only some trials have"
        )
    ((at, route),) = routes
    changed = _changed(parts[at], route, value, where=where)
    whole = tuple(changed if place == at else part for place, part in enumerate(parts))
    filled: Any = whole if isinstance(held, tuple) else changed
    return replace(trial, **{slot: filled})


def _route(part: Component, label: str, path: Sequence[str]) -> tuple[str, ...]:
    """The path to a setting inside a component's settings, its own name left out; empty where there is none."""
    for route in (tuple(path), tuple(path[1:]) if path[0] == label else ()):
        inner: Any = settings(part, with_runtime=True)
        for key in route:
            inner = inner.get(key, _ABSENT) if isinstance(inner, dict) else _ABSENT
        if route and inner is not _ABSENT and not isinstance(inner, dict):
            return route
    return ()


_ABSENT = object()


def _changed(part: Component, route: Sequence[str], value: Any, *, where: str) -> Component:
    given = settings(part, with_runtime=True)
    inner = given
    for key in route[:-1]:
        inner = inner[key]
    inner[route[-1]] = value
    return checked(type(part), given, where=where)
