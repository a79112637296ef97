"""The options of an import besides its format: files, columns, and the handling of titles and judgments."""

import codecs
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from harness.core.errors import ConfigError, did_you_mean
from harness.data.write import checked_name

COLUMNS = (
    *("doc.id", "doc.text", "doc.title"),
    *("query.id", "query.text", "query.answer", "query.type", "query.group"),
    *("evidence.doc", "evidence.start", "evidence.end", "evidence.quote", "evidence.grade", "evidence.chunk"),
)
"""The parts that `--map` can assign a column to."""

Titles = Literal["text", "separate"]

_COMMAND_LINE = {
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
    "exclude": "--exclude",
    "test_set": "--test-set",
}


@dataclass(frozen=True)
class Options:
    """Settings of an import; a format refuses those that it does not use.

    Paths are relative to the source folder. `columns` names the column of each part in `COLUMNS`. `unit` says whether
    articles or paragraphs become documents (squad). With `ignore_self`, a query that has the id of a document ignores
    that document; with `absent`, evidence in unknown documents is kept and always counts as missed. `titles` become the
    first paragraph of the text, or stay separate; None takes the default of the format. Files of documents that match a
    pattern of `exclude` are left out. `test_set` says whether a query set named `test`, if there are others, is locked;
    None takes the default of the format. Raises ConfigError for invalid names, columns and encodings.
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
    exclude: tuple[str, ...] = ()
    test_set: Literal["locked", "open"] | None = None

    def unused_options(self, used: Collection[str]) -> str:
        """The command-line name of the first option that is set but not in `used`; "" if there is none."""
        plain = Options()
        return next(
            (
                _COMMAND_LINE[f.name]
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
                raise ConfigError(f"--map {column}: no such column.{close} Choose from: {', '.join(COLUMNS)}")
        try:
            object.__setattr__(self, "encoding", codecs.lookup(self.encoding).name)
            if "\n".encode(self.encoding) != b"\n":
                raise LookupError
        except (LookupError, UnicodeError):
            raise ConfigError(
                f"--encoding {self.encoding}: is not an encoding of text lines; such as utf-8 or latin-1"
            ) from None
