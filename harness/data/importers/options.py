"""What a person says about an import besides its format: which files, which columns, how judgments are meant."""

import codecs
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from harness.core.errors import ConfigError, did_you_mean
from harness.data.write import checked_name

COLUMNS = (
    *("doc.id", "doc.text", "doc.title"),
    *("query.id", "query.text", "query.answer", "query.type", "query.group"),
    *("evidence.doc", "evidence.start", "evidence.end", "evidence.quote", "evidence.grade"),
)
"""What the columns of a table can be, for `map`."""

Titles = Literal["text", "separate"]

_WORDS = {
    "corpus": "--corpus",
    "queries": "--queries",
    "qrels": "--qrels",
    "runs": "--run",
    "columns": "--map",
    "topic": "--topic",
    "unit": "--unit",
    "encoding": "--encoding",
    "name": "--set",
    "ignore_self": "--ignore-self",
    "titles": "--titles",
    "absent": "--absent",
}


@dataclass(frozen=True)
class Options:
    """Settings of an import; those a format has no use for are refused by it.

    Paths are relative to the source folder. `columns` says which column of a table each of `COLUMNS` is. `unit` makes
    a document of every article or every paragraph (squad). With `ignore_self` a query that has the id of a document is
    never given that document; with `absent` evidence in unknown documents is kept, as always missed. `titles` become
    the first paragraph of the text, or stay beside it; None as the format has it.
    """

    corpus: str | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    qrels: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    topic: Literal["title", "desc", "narr"] = "title"
    unit: Literal["article", "paragraph"] = "article"
    encoding: str = "utf-8"
    name: str = "validation"
    ignore_self: bool = False
    titles: Titles | None = None
    absent: bool = False

    def unused_options(self, used: Collection[str]) -> str:
        """The command line's word for the first option that is set and not heeded; "" where there is none."""
        plain = Options()
        return next(
            (
                _WORDS[f.name]
                for f in fields(self)
                if f.name not in used and getattr(self, f.name) != getattr(plain, f.name)
            ),
            "",
        )

    def __post_init__(self) -> None:
        for name in (self.name, *self.queries, *self.qrels, *self.runs):
            if name:
                checked_name(name)
        for column in self.columns:
            if column not in COLUMNS:
                close = did_you_mean(column, COLUMNS)
                raise ConfigError(f"--map {column}: no such column.{close} There are: {', '.join(COLUMNS)}")
        try:
            object.__setattr__(self, "encoding", codecs.lookup(self.encoding).name)
            if "\n".encode(self.encoding) != b"\n":
                raise LookupError
        except (LookupError, UnicodeError):
            raise ConfigError(
                f"--encoding {self.encoding}: is no encoding of lines of text; such as utf-8 or latin-1"
            ) from None
