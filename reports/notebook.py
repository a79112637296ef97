"""What a notebook shows: tables that sort, filter and group, figures that answer to the pointer, the query explorer."""

from dataclasses import dataclass
from functools import partial
from html import escape
from math import ceil
from pathlib import Path

from harness.core.characters import visible
from harness.core.notebook_views import register_view
from harness.core.secrecy import redact
from harness.running.launch_result import Launch
from reports.compare import compare
from reports.comparison import Comparison, footnotes, html
from reports.gate_files import history
from reports.gate_result import GateResult
from reports.gate_result import html as result_html
from reports.page.document import explorer_page, rendered
from reports.page.figures import WIDE, forest, standalone
from reports.page.parts import Figure, Notes, Section
from reports.page.tables import comparison_table


@dataclass(frozen=True)
class View:
    """A self-contained page that a notebook shows in a frame of `height` rem; `title` describes it.

    `fallback` is shown where a notebook's frames are not, as on the sites of code hosts: HTML, or empty.
    """

    html: str
    title: str
    height: int = 40
    fallback: str = ""

    def write(self, path: Path | str) -> Path:
        """Write the page and return its path."""
        target = Path(path)
        target.write_text(self.html, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        # In an iframe, because the page's styles and scripts must not affect the notebook.
        style = f"width:100%;height:{self.height}rem;border:0;resize:vertical"
        frame = f'<iframe srcdoc="{escape(self.html)}" style="{style}" title="{escape(self.title)}"></iframe>'
        if not self.fallback:
            return frame
        return f"{frame}<details><summary>as a plain table</summary>{self.fallback}</details>"


@dataclass(frozen=True)
class Plot(View):
    """A figure: in a notebook with values under the pointer; `svg` is the same as a file of its own."""

    svg: str = ""

    def write(self, path: Path | str) -> Path:
        """Write the figure and return its path: as SVG if the name ends in `.svg`, else as a page."""
        target = Path(path)
        target.write_text(self.svg if target.suffix.lower() == ".svg" else self.html, encoding="utf-8")
        return target


def comparison_view(comparison: Comparison) -> View:
    """Return the table of a comparison, which sorts, filters and groups by what varies between its trials."""
    params = [row.result.params if row.result else {} for row in comparison.rows]
    notes = Notes([note.removeprefix("note: ") for note in footnotes(comparison)])
    section = Section("comparison", "", [comparison_table(comparison, params, link=""), notes])
    title = f"comparison on {comparison.metric}"
    height = min(46, 16 + 2 * len(comparison.rows))
    return View(_safe(rendered([section], title=title)), title, height, html(comparison))


def plot(comparison: Comparison) -> Plot:
    """Return the figure of the differences to the baseline, with their intervals."""
    section = Section("comparison", "", [Figure(partial(forest, comparison))])
    title = f"differences in {comparison.metric} to the baseline"
    height = min(60, 7 + ceil(2.1 * len(comparison.rows)))
    return Plot(_safe(rendered([section], title=title)), title, height, svg=standalone(forest(comparison, WIDE)))


def explore(launch: Launch, *trials: str, on: str | None = None) -> View:
    """Return the query explorer of a launch; `trials` are those to begin with (default: the baseline and the best).

    Raises ConfigError for an unknown trial or metric, or a launch without a session.
    """
    page = explorer_page(launch, compare(launch, on=on), trials)
    return View(_safe(page), f"queries of {launch.experiment.name}", 52)


def _safe(page: str) -> str:
    """A page without secrets and invisible characters."""
    return visible(redact(page))


def gate_view(found: GateResult) -> View:
    """Return the history of a gate's scheduled runs, this one the newest, with the queries that got worse."""
    return View(history(found), f"the gate of {found.experiment}", 46, result_html(found))


def register_views() -> None:
    """Have launches, comparisons and results of the gate show themselves in notebooks."""
    register_view(GateResult, "history", lambda found: gate_view(found)._repr_html_())
    register_view(Comparison, "table", lambda comparison: comparison_view(comparison)._repr_html_())
    register_view(Comparison, "plot", plot)
    register_view(Launch, "explore", explore)
