"""The component base class: a frozen dataclass whose fields are its settings, YAML keys, logged params and identity."""

import dataclasses
import re
from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from pydantic import Field

from harness.llm.prompter import Prompter

Positive = Annotated[int, Field(gt=0, le=2**31 - 1)]
NotNegative = Annotated[int, Field(ge=0, le=2**31 - 1)]
Fraction = Annotated[float, Field(ge=0, le=1)]


def runtime(default: Any) -> Any:
    """A field for a setting that changes only speed or cost; it is left out of the identity.

    >>> # workers: int = runtime(4)
    """
    return dataclasses.field(default=default, metadata={"runtime": True})


def post_answer(default: Any) -> Any:
    """A field for a setting that decides what is asked and how answers are used, but changes no single answer.

    Stored answers are reused for all its values.
    """
    return dataclasses.field(default=default, metadata={"post_answer": True}, kw_only=True)


T = TypeVar("T")


class _Declared(Generic[T]):
    """A default that instances see and the class does not, so that a subclass may declare a setting without one."""

    def __init__(self, default: T) -> None:
        self.default = default

    def __get__(self, part: object | None, owner: type) -> T:
        if part is None:
            raise AttributeError("a declared default belongs to instances")
        return self.default


def declared(default: T) -> T:
    """A fact that every component of a role has, with its default; a component may make it one of its settings."""
    return cast(T, _Declared(default))


def post_answer_names(component: "Component") -> set[str]:
    """Names of the settings that were declared with `post_answer`."""
    return {field.name for field in dataclasses.fields(component) if field.metadata.get("post_answer")}  # type: ignore[arg-type]


def snake_case(name: str) -> str:
    """Convert a class name to the name used in YAML.

    >>> snake_case("TokenBudget"), snake_case("BM25"), snake_case("TopK")
    ('token_budget', 'bm25', 'top_k')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Component(ABC):
    """Base class of all parts of a trial.

    A subclass is a frozen dataclass with default values. Its constructor only stores the settings; `problem()` checks
    settings against each other. Increase `version` when the same settings start to produce different results.
    """

    role: ClassVar[str] = ""
    version: ClassVar[int] = 1
    paths: ClassVar[tuple[str, ...]] = ()
    """The settings that are file paths, relative to the experiment file."""
    source: ClassVar[tuple[str, str] | None] = None
    """For a custom component: the reference it was loaded by and the SHA-256 of its source file."""
    model: str = declared("")
    """The name of the model that it uses; empty if it uses none."""
    max_failed: float = declared(0.0)
    """The maximum fraction of its questions that its language model may leave unanswered."""
    __pydantic_config__: ClassVar[dict[str, Any]] = {"strict": True, "extra": "forbid"}

    @classmethod
    def name(cls) -> str:
        """The name used in YAML, MLflow and the identity."""
        return snake_case(cls.__name__)

    def problem(self) -> str | None:
        """An error message if the settings do not fit together, else None."""
        return None

    @property
    def prompter(self) -> Prompter | None:
        """The component itself if it has questions for a language model, which the harness asks; else None."""
        return None

    def packages(self) -> Mapping[str, str]:
        """Extra packages that must be installed, each mapped to the extra of the harness that installs it."""
        return {}

    def facts(self) -> Mapping[str, str]:
        """Inputs other than settings that affect the results, such as the content of a file named by a setting."""
        return {}


def settings(component: Component, *, with_runtime: bool = False) -> dict[str, Any]:
    """Return the settings as plain JSON values; nested components become mappings.

    >>> # settings(Fixed(size=256)) == {"size": 256, "overlap": 0, "unit": "tokens"}
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(component):  # type: ignore[arg-type]
        if field.metadata.get("runtime") and not with_runtime:
            continue
        value = getattr(component, field.name)
        if isinstance(value, Component):
            value = settings(value, with_runtime=with_runtime)
        if isinstance(value, float):
            value += 0.0  # turns -0.0 into 0.0
        values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def identity(component: Component) -> dict[str, Any]:
    """Everything that decides a component's results: role, name, version, settings, facts and custom source hash."""
    known: dict[str, Any] = {
        "role": component.role,
        "name": component.name(),
        "version": component.version,
        "settings": settings(component),
    }
    parts = {f.name: getattr(component, f.name) for f in dataclasses.fields(component)}  # type: ignore[arg-type]
    versions = {name: part.version for name, part in parts.items() if isinstance(part, Component)}
    if versions:
        known["parts"] = versions
    facts = component.facts()
    if facts:
        known["facts"] = dict(facts)
    own = vars(type(component)).get("source")
    if own:
        known["source"] = own[1]
    return known


def step_labels(steps: Sequence[Component]) -> list[str]:
    """Return the components' names; repeated names are numbered: `top_k`, `top_k_2`."""
    names = [step.name() for step in steps]
    counts = [names[: at + 1].count(name) for at, name in enumerate(names)]
    return [name if count == 1 else f"{name}_{count}" for name, count in zip(names, counts, strict=True)]
