"""Splitters from other libraries, given by class name."""

import importlib
import importlib.metadata
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from pydantic import JsonValue

from harness.components.chunkers.alignment import aligned
from harness.components.roles import Chunker
from harness.core.errors import ConfigError, HarnessError, did_you_mean
from harness.core.records import Document, Spans
from harness.core.tokenizer import Tokenizer, use_bundled_ranks

T = TypeVar("T")

Options = dict[str, JsonValue]
"""Arguments of a splitter's constructor, as written in the experiment file."""


@dataclass(frozen=True)
class Foreign(Chunker):
    """A splitter from another library; the library's version is part of the identity."""

    module: ClassVar[str] = ""
    package: ClassVar[str] = ""

    splitter: str
    options: Options = field(default_factory=dict, hash=False)

    def facts(self) -> dict[str, str]:
        """The installed version of the library; empty if it is not installed."""
        try:
            return {self.package: importlib.metadata.version(self.package)}
        except importlib.metadata.PackageNotFoundError:
            return {}

    def packages(self) -> dict[str, str]:
        """The library, from the extra `adapters`."""
        return {self.module.partition(".")[0]: "adapters"}

    def length(self) -> str:
        """The unit passed to the splitter, `characters` or a tokenizer's name; empty to use the splitter's own unit."""
        return ""

    def asked(self, call: Callable[[Any], T]) -> T:
        """Return the result of a call with the splitter. Raises ConfigError if it cannot be built or the call fails."""
        where = f"chunker {self.name()}"
        options = json.dumps(dict(self.options), sort_keys=True)
        splitter = _built(where, self.module, self.splitter, options, self.length())
        return _explained(f"{where}: {self.splitter}", lambda: call(splitter))


class TextSplitter(Foreign):
    """A splitter that returns only text; its pieces are aligned with the document."""

    def split(self, doc: Document) -> Spans:
        """Return the spans of the pieces. Raises ConfigError if they cannot be aligned with the document."""
        pieces = self.asked(lambda splitter: list(splitter.split_text(doc.text)))
        return aligned(doc.text, pieces, f"chunker {self.name()}: document '{doc.id}'")


@lru_cache(maxsize=8)
def _built(where: str, module: str, name: str, options: str, length: str) -> Any:
    use_bundled_ranks()
    try:
        library = importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ConfigError(f"{where}: {package} is missing; pip install 'retrieval-harness[adapters]'") from error
    made = getattr(library, name, None)
    if not isinstance(made, type):
        known = [found for found in dir(library) if found[0].isupper()]
        raise ConfigError(f"{where}: {module} has no splitter '{name}'.{did_you_mean(name, known)}")
    arguments: dict[str, Any] = json.loads(options)
    if length:
        arguments["length_function"] = len if length == "characters" else Tokenizer(length).count
    return _explained(f"{where}: {name}", lambda: made(**arguments))


def _explained(where: str, call: Callable[[], T]) -> T:
    """Call into another library and report any exception in one line: the class and its options are user input."""
    try:
        return call()
    except HarnessError:
        raise
    except Exception as error:
        raise ConfigError(f"{where}: {' '.join(f'{type(error).__name__}: {error}'.split())[:200]}") from error
