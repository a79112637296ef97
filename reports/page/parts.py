"""The building blocks of the page's sections; `page.html` renders each kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from markupsafe import Markup


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    soft: bool = False
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True)
class Figure:
    """An SVG made by `figures`, whose texts are escaped."""

    drawn: str
    kind: ClassVar[str] = "figure"

    @property
    def svg(self) -> Markup:
        """The SVG, marked as safe HTML."""
        return Markup(self.drawn)


@dataclass(frozen=True)
class Notes:
    """A list of remarks."""

    notes: Sequence[str]
    kind: ClassVar[str] = "notes"


@dataclass(frozen=True)
class Facts:
    """A list of terms with their descriptions."""

    facts: Sequence[tuple[str, str]]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Folded:
    """A long text that is folded behind a summary."""

    summary: str
    text: str
    kind: ClassVar[str] = "folded"


class Cell(NamedTuple):
    """A cell: its text, its sort key (None: the text), and its CSS classes."""

    text: str
    value: float | str | None = None
    mark: str = ""


class Line(NamedTuple):
    """A row of a table, with its CSS class."""

    cells: Sequence[Cell]
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A table; `sortable` ones are sorted by clicking on a column head."""

    head: Sequence[str]
    rows: Sequence[Line]
    caption: str = ""
    sortable: bool = True
    kind: ClassVar[str] = "table"

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """Each column head, and whether its column is left-aligned."""
        marks = [cell.mark for cell in self.rows[0].cells] if self.rows else [""] * len(self.head)
        return [(head, "left" in mark.split()) for head, mark in zip(self.head, marks, strict=True)]


@dataclass(frozen=True)
class Explorer:
    """The place of the query explorer in the page."""

    kind: ClassVar[str] = "explorer"


Part = Text | Heading | Figure | Notes | Facts | Folded | Table | Explorer


@dataclass(frozen=True)
class Section:
    """A section: its anchor `id`, title and parts."""

    id: str
    title: str
    parts: Sequence[Part]
