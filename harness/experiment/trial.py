"""A trial: one component per slot, the data it runs on, and how it is scored; can be written to and read from JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from harness.components.augmenters.none import NoContext
from harness.components.component import Component, identity, settings, step_labels
from harness.components.embedders.local import Local
from harness.components.roles import (
    BaseAugmenter,
    BaseChunker,
    BaseRetriever,
    Embedder,
    Judge,
    Metric,
    Selector,
    judge_measures,
)
from harness.core.errors import ConfigError
from harness.data.manifest import Copies
from harness.experiment.catalog import component, to_spec
from harness.experiment.compatibility import check_steps, check_system
from harness.experiment.metric_specs import metrics_of, require_distinct
from harness.experiment.params import flat_params, part_depths
from harness.experiment.parsing import key_path, slot_value
from harness.experiment.trial_names import SLOTS
from harness.storage.digest import canonical

Unanswerable = Literal["skip", "zero"]


METRICS = ("recall@5", "recall@1000t", "ndcg@10")


@dataclass(frozen=True)
class Trial:
    """One component per slot, the data it runs on, and how it is scored."""

    data: str
    chunker: BaseChunker
    retriever: BaseRetriever
    queries: str = "validation"
    tokenizer: str = "o200k_base"
    augmenter: BaseAugmenter = field(default_factory=NoContext)
    embedder: Embedder = field(default_factory=Local)
    selector: tuple[Selector, ...] = ()
    judges: tuple[Judge, ...] = ()
    metrics: tuple[str, ...] = METRICS
    own_metrics: tuple[Metric, ...] = ()
    """The researcher's own metrics that `metrics` names, such as `nugget_recall@5`."""
    coverage: float = 0.5
    copies: Copies | None = None
    """Whether verbatim copies of evidence count as evidence; None uses the setting of the data set."""
    relevant_from: float = 0.0
    """The min grade of relevant evidence; evidence with a lower grade only adds to graded gain."""
    unanswerable: Unanswerable = "skip"
    """Whether queries without relevant evidence are left out of means ("skip") or count as 0 ("zero")."""
    limit: int | None = None
    """The most queries to use: a sample of the set, for a partial run."""

    @property
    def embeds_queries(self) -> bool:
        """Whether the retriever, one of its parts, or another system searches embeddings."""
        service = self.retriever.system.service if self.retriever.system else None
        return self.embeds_corpus or (service is not None and service.asks_by_vector)

    @property
    def embeds_corpus(self) -> bool:
        """Whether the retriever, or one of its parts, searches embeddings of chunks."""
        return any(part.uses_vectors for part in (self.retriever, *self.retriever.parts))

    @property
    def uses_vectors(self) -> bool:
        """Whether any component needs embeddings; if not, the embedder is not part of the trial's identity."""
        compared = any(step.uses_vectors for step in self.selector)
        return self.embeds_queries or compared or self.chunker.uses_vectors

    def identity(self) -> dict[str, Any]:
        """All settings in the experiment file that affect the trial's results, as JSON-serializable values."""
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
            **({"own_metrics": [identity(metric) for metric in self.own_metrics]} if self.own_metrics else {}),
            "coverage": self.coverage,
            "copies": self.copies,
            "relevant_from": self.relevant_from,
            "unanswerable": self.unanswerable,
            **({"limit": self.limit} if self.limit else {}),
        }

    def params(self) -> dict[str, str]:
        """The settings as MLflow params, named by their YAML paths: `chunker`, `chunker.size`, `selector.top_k.k`."""
        params: dict[str, str] = {}
        for slot in SLOTS:
            if slot == "embedder" and not self.uses_vectors:
                params[slot] = "none"
            elif slot == "selector":
                labels = step_labels(self.selector)
                params[slot] = "+".join(step.name() for step in self.selector) or "none"
                for label, step in zip(labels, self.selector, strict=True):
                    params |= flat_params(f"{slot}.{label}", settings(step))
            else:
                part: Component = getattr(self, slot)
                params[slot] = part.name()
                params |= flat_params(slot, settings(part))
                params |= part_depths(part)
        for label, judge in zip(step_labels(self.judges), self.judges, strict=True):
            params[f"judge.{label}"] = judge.model or "no model"
            params |= flat_params(
                f"judge.{label}", {k: v for k, v in settings(judge).items() if v is not None and k != "model"}
            )
            params |= flat_params(f"judge.{label}", {"version": judge.version, **judge.facts()})
        for metric in self.own_metrics:
            params |= flat_params(f"metric.{metric.name()}", {**settings(metric), "version": metric.version})
        return params | {
            "data": self.data,
            "queries": self.queries,
            "tokenizer": self.tokenizer,
            "coverage": str(self.coverage),
            "copies": self.copies or "",
            "relevant_from": f"{self.relevant_from:g}",
            "unanswerable": self.unanswerable,
            **({"limit": str(self.limit)} if self.limit else {}),
        }

    def to_json(self) -> str:
        """The trial as JSON text; `from_json` returns an equal trial in any process on this machine."""
        value: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in (*SLOTS, "judges", "own_metrics"):
            part = value[name]
            value[name] = [to_spec(p) for p in part] if isinstance(part, tuple | list) else to_spec(part)
        for name in ("own_metrics", "limit"):
            if not value[name]:
                del value[name]
        return canonical(value)

    @classmethod
    def from_json(cls, text: str, *, where: str = "trial") -> "Trial":
        """The trial of a `to_json` text. Raises ConfigError, which starts with `where`, if it is invalid."""
        return trial_of(json.loads(text), where=where, base_dir=Path("/"))


def trial_of(content: Mapping[str, Any], *, where: str, base_dir: Path) -> Trial:
    """The trial of a mapping whose slots are component specs. Raises ConfigError for an invalid value."""
    given = dict(content)
    for slot in SLOTS:
        if slot in given:
            given[slot] = slot_value(slot, given[slot], where=key_path(where, slot), base_dir=base_dir)
    listed = given.get("judges") or ()
    if not isinstance(listed, list | tuple):
        raise ConfigError(f"{key_path(where, 'judges')}: expected a list")
    given["judges"] = tuple(
        component("judge", spec, where=f"{key_path(where, 'judges')}[{at}]", base_dir=base_dir)
        for at, spec in enumerate(listed)
    )
    return _checked(given, where=where, base_dir=base_dir)


class TrialChecker:
    """Checks trials made in Python or by a grid as if they were read from a file; each distinct component once."""

    def __init__(self, where: str, base_dir: Path) -> None:
        self._where, self._base_dir = where, base_dir
        self._known: dict[str, Component] = {}

    def checked(self, trial: Trial) -> Trial:
        """Return the trial with checked components. Raises ConfigError for an invalid value."""
        given: dict[str, Any] = {field.name: getattr(trial, field.name) for field in fields(trial)}
        for slot in SLOTS:
            if slot not in _LISTS:
                given[slot] = self._part(slot, given[slot], key_path(self._where, slot))
        given |= {name: self.parts(trial, name) for name in _LISTS}
        return _checked(given, where=self._where, base_dir=self._base_dir)

    def parts(self, trial: Trial, name: str) -> tuple[Component, ...]:
        """Return the checked components of a field that holds several. Raises ConfigError if one is invalid."""
        held, where = getattr(trial, name), key_path(self._where, name)
        parts = held if isinstance(held, tuple | list) else (held,)
        return tuple(self._part(_LISTS[name], part, f"{where}[{at}]") for at, part in enumerate(parts))

    def _part(self, role: str, part: Component, where: str) -> Component:
        """The component, read back from its spec: so it is the same in any process."""
        if not isinstance(part, Component) or part.role != role:
            raise ConfigError(f"{where}: expected a component of the role {role}, got {part!r:.80}")
        spec = to_spec(part)
        key = f"{role} {spec!r}"
        if key not in self._known:
            self._known[key] = component(role, spec, where=where, base_dir=self._base_dir)
        return self._known[key]


_LISTS = {"selector": "selector", "judges": "judge", "own_metrics": "metric"}
"""The fields that hold several components, and the role of those."""


def _checked(given: dict[str, Any], *, where: str, base_dir: Path) -> Trial:
    """The trial of its fields. Raises ConfigError for an invalid value, or if the components do not fit together."""
    given["metrics"], given["own_metrics"] = metrics_of(
        given.get("metrics", METRICS),
        given.get("own_metrics", ()),
        where=key_path(where, "metrics"),
        own_where=key_path(where, "own_metrics"),
        base_dir=base_dir,
    )
    require_distinct(given["own_metrics"], judge_measures(given["judges"]), key_path(where, "metrics"))
    coverage = given.get("coverage", 0.5)
    if isinstance(coverage, bool) or not isinstance(coverage, int | float) or not 0 < coverage <= 1:
        raise ConfigError(f"{key_path(where, 'coverage')}: expected a number above 0 and at most 1, got {coverage!r}")
    given["coverage"] = float(coverage)
    retriever = given.get("retriever")
    if isinstance(retriever, BaseRetriever):
        check_steps(retriever, given.get("selector", ()), given["judges"], key_path(where, "selector"))
        chunker, augmenter = given.get("chunker"), given.get("augmenter", NoContext())
        if isinstance(chunker, BaseChunker) and isinstance(augmenter, BaseAugmenter):
            check_system(chunker, augmenter, retriever, given["metrics"], where)
    if given.get("copies") not in (None, "credit", "ignore"):
        raise ConfigError(f"{key_path(where, 'copies')}: expected credit or ignore, got {given['copies']!r}")
    grade = given.get("relevant_from", 0.0)
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= 1e6:
        raise ConfigError(f"{key_path(where, 'relevant_from')}: expected a grade such as 2, got {grade!r}")
    given["relevant_from"] = float(grade)
    if given.get("unanswerable", "skip") not in ("skip", "zero"):
        raise ConfigError(f"{key_path(where, 'unanswerable')}: expected skip or zero, got {given['unanswerable']!r}")
    return Trial(**given)
