"""What a notebook shows of an object. The room that draws registers it, since the rooms below it cannot import it."""

from collections.abc import Callable
from typing import Any

from harness.core.errors import HarnessError

_registered: dict[tuple[str, str], Callable[..., Any]] = {}


def register_view(kind: type, name: str, make: Callable[..., Any]) -> None:
    """Have `make` return the view `name` of objects of a class."""
    _registered[kind.__name__, name] = make


def view(shown: object, name: str, *arguments: Any, **named: Any) -> Any:
    """Return a view of an object. Raises HarnessError if nothing draws it yet."""
    make = _registered.get((type(shown).__name__, name))
    if make is None:
        raise HarnessError(f"{type(shown).__name__}: nothing shows it; `import reports` first")
    return make(shown, *arguments, **named)
