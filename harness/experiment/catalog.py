"""The component catalog: from a name in YAML to a checked component, and back to JSON."""

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

import judges
from harness.components import augmenters, chunkers, embedders, retrievers, selectors
from harness.components.component import Component, settings
from harness.components.roles import ROLES
from harness.core.blame import blamed, fault_of
from harness.core.errors import ConfigError, did_you_mean

_PACKAGES = {
    "chunker": chunkers,
    "augmenter": augmenters,
    "embedder": embedders,
    "retriever": retrievers,
    "selector": selectors,
    "judge": judges,
}
BUILTINS: Mapping[str, Mapping[str, type[Component]]] = {
    **{role: {cls.name(): cls for cls in package.BUILTINS} for role, package in _PACKAGES.items()},
    # Built-in measures are functions; components of this role are a researcher's own.
    "metric": {},
}


_USED: Mapping[str, tuple[str, ...]] = {
    "chunker": ("cut", "request"),
    "augmenter": ("contexts", "questions"),
    "embedder": (),
    "retriever": ("rank", "recorded", "indexes"),
    "selector": ("reranker", "rescore", "questions"),
    "judge": (),
    "metric": (),
}
"""How the harness calls a component of a role, whatever its base class; the base classes implement these names."""


def component(role: str, spec: Any, *, where: str, base_dir: Path) -> Component:
    """The component of a spec, with its settings checked.

    `where` is the location of the spec for error messages; file references are relative to `base_dir`. Raises
    ConfigError for an unknown name, an invalid setting or a faulty custom class.
    """
    name, given = _read(spec, where)
    cls = _class(role, name, where, base_dir)
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: {name}: expected a mapping of settings, got {json.dumps(given, default=str)[:60]}")
    named = {key: given[key] for key in cls.paths if given.get(key) and isinstance(given[key], str)}
    files = {key: str((base_dir / path).resolve()) for key, path in named.items()}
    return checked(cls, {**given, **files}, where=f"{where}.{name}" if given else where)


def checked(cls: type[Component], given: Mapping[str, Any], *, where: str) -> Component:
    """An instance of `cls` with strictly validated settings. Raises ConfigError that names the invalid setting."""
    try:
        made: Component = _adapter(cls).validate_json(json.dumps(dict(given), allow_nan=False), strict=True)
    except ValidationError as error:
        raise ConfigError(f"{where}: {_explain(cls, error)}") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{where}: {error}; a setting is text, a number, true/false, null or a list of them"
        ) from None
    with blamed(made, where):
        problem = made.problem()
    if problem:
        raise ConfigError(f"{where}: {problem}")
    return made


def to_spec(part: Component) -> dict[str, Any]:
    """The component as a JSON-serializable spec with all its settings; `component` reads it back in any process."""
    cls = type(part)
    if BUILTINS[cls.role].get(cls.name()) is not cls and "source" not in vars(cls):
        _set_source(cls)
    own = vars(cls).get("source")
    return {own[0] if own else cls.name(): settings(part, with_runtime=True)}


class Setting(NamedTuple):
    """A setting of a component: its default as text, and whether it affects only speed or cost."""

    name: str
    default: str
    runtime: bool


class Description(NamedTuple):
    """A built-in component in words: the first paragraph of its docstring in one line, the others, and its settings."""

    summary: str
    details: str
    settings: list[Setting]


def describe(role: str, name: str) -> Description:
    """The description of a built-in component."""
    cls = BUILTINS[role][name]
    first, _, others = (inspect.getdoc(cls) or "").partition("\n\n")
    settings = [
        Setting(field.name, _default(field), bool(field.metadata.get("runtime")))
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
    ]
    return Description(" ".join(first.split()), others, settings)


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return json.dumps(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return f"{type(field.default_factory()).__name__}()"
    return "required"


def _read(spec: Any, where: str) -> tuple[str, Any]:
    if spec is None:
        return "none", {}
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, dict) and len(spec) == 1:
        ((name, given),) = spec.items()
        if isinstance(name, str):
            return name, {} if given is None else given
    raise ConfigError(
        f"{where}: expected a name or {{name: {{setting: value}}}}, got {json.dumps(spec, default=str)[:80]}"
    )


def _class(role: str, name: str, where: str, base_dir: Path) -> type[Component]:
    known = BUILTINS[role]
    if name in known:
        return known[name]
    if ":" in name:
        return _custom_class(role, name, where, base_dir)
    built_in = ", ".join(known) or "none yet"
    raise ConfigError(
        f"{where}: no {role} named '{name}'.{did_you_mean(name, known)} Built in: {built_in}; custom: file.py:Class"
    )


def _custom_class(role: str, reference: str, where: str, base_dir: Path) -> type[Component]:
    place, _, attribute = reference.rpartition(":")
    module = _from_file(base_dir / place, where) if place.endswith(".py") else _from_package(place, where)
    cls = getattr(module, attribute, None)
    if not inspect.isclass(cls):
        found = [
            name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, ROLES[role])
        ]
        raise ConfigError(f"{where}: {place} has no class {attribute}.{did_you_mean(attribute, found)}")
    wanted = ROLES[role]
    if not issubclass(cls, wanted):
        raise ConfigError(
            f"{where}: {reference} is not a {role}; derive it from harness.{wanted.__name__.removeprefix('Base')}"
        )
    if "__dataclass_params__" not in vars(cls) or not vars(cls)["__dataclass_params__"].frozen:
        raise ConfigError(f"{where}: put @dataclass(frozen=True) above class {attribute} in {place}")
    missing = ", ".join(sorted(cls.__abstractmethods__))
    if missing:
        raise ConfigError(f"{where}: class {attribute} in {place} does not define {missing}")
    _refuse_used_names(role, cls, f"{where}: class {attribute} in {place}")
    _set_source(cls, None if place.endswith(".py") else reference)
    return cls


def import_source(place: str, where: str) -> ModuleType:
    """Import own code: a file, `path.py`, or a module by name. Raises ConfigError or ComponentError if it fails."""
    return _from_file(Path(place), where) if place.endswith(".py") else _from_package(place, where)


def _refuse_used_names(role: str, cls: type[Component], where: str) -> None:
    """Raise ConfigError if a custom class has a method or setting of a name by which the harness calls its role."""
    base = next(found for found in cls.__mro__ if found.__module__.partition(".")[0] == "harness")
    own = cls.__mro__[: cls.__mro__.index(base)]
    allowed = base.__name__.startswith("Base")  # such a class implements the role
    for name in () if allowed else (*_USED[role], "prompter"):
        if any(name in vars(found) or name in vars(found).get("__annotations__", {}) for found in own):
            raise ConfigError(f"{where} defines `{name}`, a name that the harness uses itself; rename it")


def _set_source(cls: type[Component], reference: str | None = None) -> None:
    """Set `source` of a custom class: a reference that any process can load it by, and the sha256 of its source file.

    `reference` is that of an importable package, if there is one; else the file's path is used.
    """
    try:
        file = Path(inspect.getfile(cls)).resolve(strict=True)
    except (TypeError, OSError):
        raise ConfigError(
            f"class {cls.__name__} has no source file; put it into a .py file, so that its source can be hashed"
        ) from None
    cls.source = (reference or f"{file}:{cls.__name__}", hashlib.sha256(file.read_bytes()).hexdigest())


def _from_file(path: Path, where: str) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise ConfigError(f"{where}: {path} does not exist")
    main = sys.modules["__main__"]
    if Path(getattr(main, "__file__", None) or "").resolve() == path:
        return main  # the running script defines the component; importing it again would run it again
    # The name includes a content hash, so that an edited file becomes a new module in a long-lived process.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SyntaxError):
            raise ConfigError(f"{where}: {path}:{error.lineno}: {error.msg}") from None
        if isinstance(error, ImportError):
            raise ConfigError(f"{where}: {path}: {error}{_moved(error.name or '')}") from error
        if isinstance(error, Exception):
            raise fault_of(f"{where}: {path.name} cannot be imported", error) from error
        raise
    return module


def _moved(module: str) -> str:
    """What to write instead of the packages of built-in components before version 0.2."""
    package = module.removeprefix("harness.").partition(".")[0]
    known = [found.__name__.rpartition(".")[2] for found in _PACKAGES.values()]
    return f"; write harness.components.{package}" if package in known and module.startswith("harness.") else ""


def _from_package(place: str, where: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except (ModuleNotFoundError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{where}: cannot import '{place}': {error}; write file.py:Class or package.module:Class"
        ) from None
    except Exception as error:
        raise fault_of(f"{where}: {place} cannot be imported", error) from error


@lru_cache(maxsize=256)
def _adapter(cls: type[Component]) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def _explain(cls: type[Component], error: ValidationError) -> str:
    # A mistyped required setting is reported as both unknown and missing; "unknown" is the more useful message.
    unknown = ("unexpected_keyword_argument", "extra_forbidden")
    first = min(error.errors(include_url=False), key=lambda fault: fault["type"] not in unknown)
    place = ".".join(str(part) for part in first["loc"])
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    if first["type"] in unknown:
        return (
            f"{cls.name()} has no setting '{place}'.{did_you_mean(place, names)} Settings: {', '.join(names) or 'none'}"
        )
    if first["type"] in ("missing", "missing_argument"):
        return f"{cls.name()} needs the setting '{place}'"
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}, got {json.dumps(first['input'], default=str)[:60]}"
