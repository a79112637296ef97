"""Retrievers of other libraries, made by a function of the user's own."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from harness.components.component import Positive
from harness.components.roles import Exchange, PassageService, SystemAnswer, SystemHit
from harness.core.errors import ConfigError
from harness.core.records import Vectors
from harness.core.secrecy import redact


@dataclass(frozen=True)
class LibraryRetriever(PassageService):
    """A retriever of another library; its version, and the source of the function, are part of the identity."""

    package: ClassVar[str] = ""
    module: ClassVar[str] = ""

    factory: str
    depth: Positive = 10

    def packages(self) -> dict[str, str]:
        """The library, from the extra `adapters`."""
        return {self.module: "adapters"}

    def facts(self) -> dict[str, str]:
        """The version of the library, and the SHA-256 of the file that has the function, as far as they are found."""
        found = {}
        try:
            found[self.package] = importlib.metadata.version(self.package)
            origin = getattr(importlib.util.find_spec(self.factory.partition(":")[0]), "origin", None)
            if origin and Path(origin).is_file():
                found["factory"] = hashlib.sha256(Path(origin).read_bytes()).hexdigest()
        except (importlib.metadata.PackageNotFoundError, ImportError, ValueError):
            pass  # asking says what is missing
        return found

    def problem(self) -> str | None:
        """An error message if `factory` does not name a function."""
        module, _, function = self.factory.partition(":")
        if not function.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
            return "factory: expected module:function, such as my_search.index:retriever, that returns a retriever"
        return None

    @abstractmethod
    def returned(self, retriever: Any, query: str) -> Sequence[Any]:
        """Ask the library's retriever, and return what it returns."""

    @abstractmethod
    def hit(self, record: Any) -> SystemHit:
        """Return a passage of the library as the harness knows it."""

    def ask(self, queries: Sequence[str], vectors: Vectors | None, done: Callable[[int, SystemAnswer], None]) -> None:
        """Ask one query after another. Raises ConfigError if the retriever cannot be made."""
        retriever = _made(self.name(), self.factory)
        for at, query in enumerate(queries):
            done(at, self._answer(retriever, query)[0])

    def exchange(self, query: str, vector: Vectors | None) -> Exchange:
        """Ask one query. Raises ConfigError if the retriever cannot be made."""
        answer, records = self._answer(_made(self.name(), self.factory), query)
        received = [str(record)[:500] for record in records] or {"error": answer.failure}
        return Exchange({"factory": self.factory, "query": query}, received, answer)

    def _answer(self, retriever: Any, query: str) -> tuple[SystemAnswer, list[Any]]:
        begun = time.perf_counter()
        records: list[Any] = []
        try:
            records = list(self.returned(retriever, query))
            ms = (time.perf_counter() - begun) * 1000
            return SystemAnswer(tuple(map(self.hit, records[: self.depth])), ms=ms, requests=1), records
        except Exception as error:  # whatever a library or the user's own code raises
            ms = (time.perf_counter() - begun) * 1000
            return SystemAnswer(failure=redact(_in_one_line(error)), ms=ms, requests=1), records


@lru_cache(maxsize=8)
def _made(name: str, factory: str) -> Any:
    module, _, function = factory.partition(":")
    where = f"retriever {name}: factory: {factory}"
    try:
        return getattr(importlib.import_module(module), function)()
    except Exception as error:  # the user's own code
        raise ConfigError(f"{where}: {_in_one_line(error)}; the module must be installed, or on PYTHONPATH") from error


def _in_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
