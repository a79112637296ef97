"""Writing a new data set folder: documents and queries are checked and written one at a time."""

import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

from harness.core.errors import DataError
from harness.core.records import Document
from harness.core.text_files import Line
from harness.data.importers.options import Titles
from harness.data.raw_records import query as parse_query


class Imported(dict[str, int]):
    """The number of imported items by kind, and of those that were left out or changed."""

    def add(self, what: str, count: int = 1) -> None:
        """Add to the count of one kind."""
        self[what] = self.get(what, 0) + count


@dataclass(frozen=True)
class NewQuery:
    """A query to write: its id and text, its evidence as records, and what else is known of it."""

    id: str
    text: str
    evidence: Sequence[dict[str, Any]]
    answer: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    irrelevant: Sequence[str] = ()
    unjudged: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        """Return the record of the query file, without keys that have no value."""
        record: dict[str, Any] = {"id": self.id, "text": self.text, "evidence": list(self.evidence)}
        record |= {"answer": self.answer} if self.answer else {}
        for key, docs in (("ignore", self.ignore), ("irrelevant", self.irrelevant), ("unjudged", self.unjudged)):
            record |= {key: list(dict.fromkeys(docs))} if docs else {}
        return record | ({"metadata": dict(self.metadata)} if self.metadata else {})


class DatasetWriter:
    """Writes `corpus.jsonl` and `queries/*.jsonl` below `root`.

    A corpus may be larger than memory, so only the ids and offsets of documents are indexed, in a temporary SQLite
    file. Documents must be added before the queries about them. Raises DataError for repeated ids and for records that
    the harness could not read.
    """

    def __init__(self, root: Path, *, ignore_self: bool = False, titles: Titles | None = None) -> None:
        self.root, self.counts = root, Imported(documents=0)
        self._ignore_self, self.titles = ignore_self, titles
        (root / "queries").mkdir()
        self._corpus: BinaryIO = (root / "corpus.jsonl").open("wb")
        self._ids = sqlite3.connect(root / ".ids", isolation_level=None)
        self._ids.execute("PRAGMA journal_mode=OFF")
        self._ids.execute("PRAGMA synchronous=OFF")
        self._ids.execute("PRAGMA cache_size=-65536")
        self._ids.execute("CREATE TABLE ids (id TEXT PRIMARY KEY, place TEXT, at INTEGER) WITHOUT ROWID")
        self._ids.execute("BEGIN")
        self._sets: dict[str, tuple[BinaryIO, dict[str, Line]]] = {}

    # -- documents

    def document(
        self,
        line: Line,
        name: str,
        text: str,
        title: str = "",
        metadata: dict[str, Any] | None = None,
        *,
        titles: Titles | Literal["contained"] = "separate",
    ) -> None:
        """Add a document; `line` is where it was read. Raises DataError if its id is empty or taken.

        `titles` is the default of the format: put a title into the text as its first paragraph, or keep it separate.
        The user's choice takes precedence, except for a title that the text contains already.
        """
        if not name.strip():
            raise line.fault("the id of the document is empty")
        where = titles if titles == "contained" else self.titles or titles
        if title and where == "text":
            text = f"{title}\n\n{text}"
            self.counts.add("titles put into the text, as its first paragraph")
        elif title and where == "separate":
            self.counts.add("titles kept separate from the text, where only `augmenter: heading` lets them be found")
        record: dict[str, Any] = {"id": name, "text": text}
        record |= {"title": title} if title else {}
        record |= {"metadata": metadata} if metadata else {}
        content = _written(line, record)
        try:
            self._ids.execute("INSERT INTO ids VALUES (?, ?, ?)", (name, line.short, self._corpus.tell()))
        except sqlite3.IntegrityError:
            (before,) = self._ids.execute("SELECT place FROM ids WHERE id = ?", (name,)).fetchone()
            raise line.fault(f"document '{name}' already occurs in {before}") from None
        self._corpus.write(content)
        self.counts.add("documents")

    def __contains__(self, name: str) -> bool:
        return self._place(name) is not None

    def get(self, name: str) -> Document | None:
        """A document added before, read back from the file; None if there is none with this id."""
        at = self._place(name)
        if at is None:
            return None
        self._corpus.flush()
        with (self.root / "corpus.jsonl").open("rb") as file:
            file.seek(at)
            return _read_back(file.readline())

    def documents(self) -> Iterator[Document]:
        """All documents added so far, in order."""
        self._corpus.flush()
        with (self.root / "corpus.jsonl").open("rb") as file:
            yield from map(_read_back, file)

    def _place(self, name: str) -> int | None:
        try:
            row = self._ids.execute("SELECT at FROM ids WHERE id = ?", (name,)).fetchone()
        except UnicodeEncodeError:
            return None
        return int(row[0]) if row else None

    # -- queries

    def query(self, line: Line, queries: str, query: NewQuery) -> None:
        """Add a query to the set named `queries`. Raises DataError if its id is taken or the record is not valid."""
        if query.id in self and self._ignore_self:
            self.counts.add(f"{queries} queries that ignore the document of their own id")
            query = replace(query, ignore=[*query.ignore, query.id])
        record = query.record()
        content = _written(line, record)
        # Never write a record that could not be read back.
        parse_query(line, record)
        file, lines = self._open(queries)
        if query.id in lines:
            raise line.fault(f"query '{query.id}' already occurs in {lines[query.id].short}")
        lines[query.id] = line
        file.write(content)
        self.counts.add(f"{queries} queries")

    def _open(self, queries: str) -> tuple[BinaryIO, dict[str, Line]]:
        if queries not in self._sets:
            self._sets[queries] = (self.root / "queries" / f"{queries}.jsonl").open("wb"), {}
        return self._sets[queries]

    def judged(self, queries: str, doc: str, grade: float) -> dict[str, Any] | None:
        """The document-level evidence of a judgment; None for a grade of 0 or below. Counts every judgment."""
        self.counts.add(f"{queries} judgments")
        if grade <= 0:
            self.counts.add(f"{queries} judgments of grade 0 or below, which are no evidence")
            return None
        evidence: dict[str, Any] = {"doc": doc}
        if doc not in self:
            self.counts.add(f"{queries} judgments of documents that the corpus lacks, kept")
            evidence["absent"] = True
        return evidence | ({"grade": grade} if grade != 1 else {})

    # -- the end

    def close(self, source: Path, *, needs_queries: bool = True) -> None:
        """Finish writing. Raises DataError if `source` had no document, or no query but `needs_queries`."""
        self._close_files()
        if not self.counts["documents"]:
            raise DataError(f"{source}: contains no document of this format")
        if needs_queries and not self._sets:
            raise DataError(f"{source}: contains no query of this format")

    def abandon(self) -> None:
        """Close all files after a failed import."""
        self._close_files()

    def _close_files(self) -> None:
        for file in (self._corpus, *(file for file, _ in self._sets.values())):
            file.close()
        self._ids.close()
        (self.root / ".ids").unlink(missing_ok=True)


def free_name(title: str, taken: set[str]) -> str:
    """The title as an id, with a number appended if it is taken; the id is added to `taken`."""
    numbers = itertools.chain([title], (f"{title} ({number})" for number in itertools.count(2)))
    name = next(name for name in numbers if name not in taken)
    taken.add(name)
    return name


def _read_back(content: bytes) -> Document:
    record = json.loads(content)
    return Document(record["id"], record["text"], record.get("title", ""), record.get("metadata", {}))


def span(doc: str, start: int, end: int, quote: str, **more: Any) -> dict[str, Any]:
    """An item of span evidence as written to the query file; offsets are in characters."""
    return {"doc": doc, "start": start, "end": end, "quote": quote, **more}


def _written(line: Line, record: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        raise line.fault(f"'{record['id']!a}' contains half a surrogate pair; remove it") from None
    except ValueError as error:
        raise line.fault(f"metadata: {error}") from None
