"""Searching an index that its owner made in a database, as it is: nothing is ever written to it."""

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness.components.component import settings
from harness.components.roles import (
    DatabaseRetriever,
    Exchange,
    PassageRetriever,
    PassageService,
    SearchInputs,
    SystemAnswer,
    SystemHit,
)
from harness.components.roles.passage_retriever import finite, rising
from harness.core.rankings import Rankings
from harness.core.records import Returned, Vectors
from harness.core.secrecy import bare_address, redact_values

FIELDS = ("text", "doc", "start", "end", "id")
"""What an index may know of a passage."""


class Found(NamedTuple):
    """A passage that a database found: its score, higher is better, and its values by name of `FIELDS`."""

    score: float
    values: Mapping[str, Any]


class SharedDatabase(DatabaseRetriever):
    """A database in which the harness makes an index, or searches the one that `existing` names.

    `fields` has the names that text, vector, document, start, end and id have there. `release` is the user's: another
    one is asked again.
    """

    uri: str
    existing: str
    fields: Mapping[str, str]
    release: str

    @property
    def database(self) -> "DatabaseRetriever | None":
        """This retriever, if the harness makes the index; else None."""
        return None if self.existing else self

    @property
    def system(self) -> PassageRetriever | None:
        """The index that exists already; else None."""
        return ExistingIndex(self) if self.existing else None

    @property
    @abstractmethod
    def compares_vectors(self) -> bool:
        """Whether a search compares vectors."""

    @property
    def uses_vectors(self) -> bool:
        """Whether it needs the vectors of chunks: an index that exists already has its own."""
        return self.compares_vectors and not self.existing

    @property
    def indexes(self) -> bool:
        """Whether the harness makes the index."""
        return not self.existing

    def facts(self) -> Mapping[str, str]:
        """The address of an index that exists already, as its content decides the results."""
        return {"uri": self.where} if self.existing else {}

    @property
    def where(self) -> str:
        """The address without credentials, or the folder; empty for the store."""
        if "://" in self.uri:
            return bare_address(self.uri)
        return str(Path(self.uri).resolve()) if self.uri else ""

    def rank(self, given: SearchInputs) -> Rankings:
        """Return the located passages of an index that exists already; else, what the database finds."""
        return self.system.rank(given) if self.system else super().rank(given)

    def existing_problem(self) -> str | None:
        """What is wrong with the settings of an index that exists already; None without one."""
        if not self.existing:
            return "fields: is only for an index that is there already; see `existing`" if self.fields else None
        if not self.uri:
            return "uri: is needed for an index that is there already"
        known = (*FIELDS, "vector", "words")
        unknown = next((name for name in self.fields if name not in known), None)
        return None if unknown is None else f"fields: expected {', '.join(known)}, got {unknown!r}"

    def named(self) -> dict[str, str]:
        """The names that the index has for what it knows of a passage; the text has the name `text` if none is set."""
        names = {"text": "text", **self.fields}
        return {field: names[field] for field in FIELDS if names.get(field)}

    @abstractmethod
    def browsed(self) -> AbstractContextManager[Any]:
        """Open the existing index for reading. Raises HarnessError if it cannot be used."""

    @abstractmethod
    def passages(self, browsed: Any, query: str, vector: Vectors | None) -> Sequence[Found]:
        """Search the existing index: at most `depth` passages, best first. `vector` is that of the query."""


@dataclass(frozen=True)
class ExistingIndex(PassageService):
    """An index that exists already, as a system that answers queries with passages."""

    engine: SharedDatabase

    @property
    def depth(self) -> int:  # type: ignore[override]
        """The most passages that are asked for."""
        return self.engine.depth

    @property
    def label(self) -> str:
        """The name of the database."""
        return self.engine.name()

    @property
    def asks_by_vector(self) -> bool:
        """Whether the search compares vectors."""
        return self.engine.compares_vectors

    def facts(self) -> Mapping[str, str]:
        """The database, and where it is."""
        return {"database": self.engine.name(), **self.engine.facts()}

    def packages(self) -> Mapping[str, str]:
        """Those of the database."""
        return self.engine.packages()

    def ask(self, queries: Sequence[str], vectors: Vectors | None, done: Callable[[int, SystemAnswer], None]) -> None:
        """Search for one query after another. Raises HarnessError if the database cannot be used."""
        with self.engine.browsed() as browsed:
            for at, query in enumerate(queries):
                found, ms = self._found(browsed, query, None if vectors is None else vectors[at])
                done(at, self._answer(found, ms))

    def exchange(self, query: str, vector: Vectors | None) -> Exchange:
        """Search for one query. Raises HarnessError if the database cannot be used."""
        with self.engine.browsed() as browsed:
            found, ms = self._found(browsed, query, vector)
        asked = {"uri": self.engine.where, **settings(self.engine), "query": query}
        received = [{"score": one.score, **one.values} for one in found]
        return Exchange(redact_values(asked), redact_values(received), self._answer(found, ms))

    def _found(self, browsed: Any, query: str, vector: Vectors | None) -> tuple[Sequence[Found], float]:
        """What the database finds, and in how many milliseconds."""
        begun = time.perf_counter()
        found = self.engine.passages(browsed, query, vector)
        return found, (time.perf_counter() - begun) * 1000

    def _answer(self, found: Sequence[Found], ms: float) -> SystemAnswer:
        try:
            for name, key in self.engine.fields.items():
                if name in FIELDS and found and all(one.values.get(name) is None for one in found):
                    raise _OddPassageError(f"no passage has a value of {key!r}, which `fields` names as its {name}")
            hits = tuple(map(_hit, found))
            if rising(hits) is not None:
                raise _OddPassageError("a passage has a higher score than the one before it")
            return SystemAnswer(hits, ms=ms, requests=1)
        except _OddPassageError as odd:
            return SystemAnswer(failure=str(odd), ms=ms, requests=1)


class _OddPassageError(Exception):
    """A passage that cannot be used."""


def _hit(found: Found) -> SystemHit:
    """The passage that a database found. Raises _OddPassageError if it cannot be used."""
    text, doc, start, end, number = (found.values.get(field) for field in FIELDS)
    score = finite(found.score)
    if score is None:
        raise _OddPassageError(f"a passage has the score {found.score}")
    if text is not None and not isinstance(text, str):
        raise _OddPassageError(f"a passage has {str(text)[:40]!r} instead of a text")
    if any(value is not None and type(value) is not int for value in (start, end)):
        raise _OddPassageError(f"a passage has {start!r:.20} and {end!r:.20} instead of numbers of characters")
    name = None if doc is None else str(doc)
    if not (text or "").strip() and None in (name, start, end):
        raise _OddPassageError("a passage has no text")
    return SystemHit(Returned(text or "", name, start, end), score, "" if number is None else str(number))
