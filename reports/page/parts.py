"""The building blocks of the page's sections; `page.html` renders each kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import ClassVar, NamedTuple

from markupsafe import Markup

from reports.page.figures import NARROW, WIDE


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
    """A figure made by `figures` for a width in inches, as SVG whose texts are escaped."""

    draw: Callable[[float], str]
    kind: ClassVar[str] = "figure"

    @cached_property
    def wide(self) -> Markup:
        """The SVG for a column of the page, marked as safe HTML."""
        return Markup(self.draw(WIDE))

    @property
    def label(self) -> str:
        """What it shows, in a line."""
        return unescape(self.wide.split('aria-label="', 1)[1].split('"', 1)[0])

    @cached_property
    def narrow(self) -> Markup:
        """The SVG for a phone, marked as safe HTML."""
        return Markup(self.draw(NARROW))


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


@dataclass(frozen=True)
class Fold:
    """Parts that are folded behind a summary; `id` is its anchor."""

    summary: str
    parts: Sequence["Part"]
    id: str = ""
    kind: ClassVar[str] = "fold"


class Shown(NamedTuple):
    """A passage: where it is, and its text in pieces, each with whether it is evidence."""

    where: str
    pieces: Sequence[tuple[str, bool]]

    @property
    def holds(self) -> bool:
        """Whether it has evidence."""
        return any(evidence for _, evidence in self.pieces)


@dataclass(frozen=True)
class Passages:
    """Passages in their order."""

    passages: Sequence[Shown]
    kind: ClassVar[str] = "passages"


class Cell(NamedTuple):
    """A cell: its text, its sort key (None: the text), its CSS classes, and where it leads on the page."""

    text: str
    value: float | str | None = None
    mark: str = ""
    link: str = ""


class Line(NamedTuple):
    """A row of a table, with its CSS class, the key of its trial, and its values of the table's `factors`."""

    cells: Sequence[Cell]
    mark: str = ""
    trial: str = ""
    values: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """A table; `sortable` ones are sorted by clicking on a column head.

    One with `factors` is filtered and grouped by them as well, and its columns can be hidden.
    """

    head: Sequence[str]
    rows: Sequence[Line]
    caption: str = ""
    sortable: bool = True
    factors: Sequence[str] = ()
    kind: ClassVar[str] = "table"

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """Each column head, and whether its column is left-aligned."""
        marks = [cell.mark for cell in self.rows[0].cells] if self.rows else [""] * len(self.head)
        return [(head, "left" in mark.split()) for head, mark in zip(self.head, marks, strict=True)]


@dataclass(frozen=True)
class Beside:
    """Parts side by side, where the window is wide enough."""

    left: Sequence["Part"]
    right: Sequence["Part"]
    kind: ClassVar[str] = "beside"


@dataclass(frozen=True)
class Explorer:
    """The place of the query explorer in the page."""

    kind: ClassVar[str] = "explorer"


Part = Text | Heading | Figure | Notes | Facts | Folded | Fold | Passages | Table | Beside | Explorer


@dataclass(frozen=True)
class Section:
    """A section: its anchor `id`, title and parts."""

    id: str
    title: str
    parts: Sequence[Part]
