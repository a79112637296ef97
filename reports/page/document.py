"""The report page: one self-contained HTML file."""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from harness.core.errors import ConfigError
from harness.running.launch_result import Launch
from harness.running.score_bins import score_bins
from reports.answer import answer
from reports.appearance import css
from reports.comparison import Comparison
from reports.final import Final, conclusion
from reports.page.explorer import Packed, pack
from reports.page.parts import Explorer, Section
from reports.page.sections import Material, sections

if TYPE_CHECKING:
    from jinja2 import Template

LARGEST = 7_500_000
"""Max size of a page in bytes."""
_SLACK = 20_000
"""Bytes reserved for the names of the explorer's blocks and for its notes."""

ANSWERING = ("dom.js", "tables.js", "figures.js")
"""The scripts of a page with tables and figures."""
SCHEDULED = (*ANSWERING, "folds.js")
"""The scripts of the history of scheduled runs."""
EXPLORING = (*ANSWERING, "markdown.js", "explorer_data.js", "retrieval.js", "query.js", "explorer.js")
"""The scripts of a page with a query explorer."""
_TABLES = ("dataTables.min.js", "dataTables.rowGroup.min.js")
_LIBRARIES: dict[Sequence[str], Sequence[str]] = {
    ANSWERING: _TABLES,
    SCHEDULED: _TABLES,
    EXPLORING: (*_TABLES, "markdown-it.min.js"),
}


def page(launch: Launch, comparison: Comparison, final: Final | None, *, explore: tuple[str, ...] = ()) -> str:
    """Returns the report as HTML: a launch, the comparison of its trials, and the finalists on the same metric, if any.

    `explore` names trials that the query explorer includes even if it has no room for all of them. Raises ConfigError
    for a launch without a session, or an unknown trial.
    """
    if launch.session is None:
        raise ConfigError("report: the launch has results only; load a launch from a store, or run an experiment")
    bins = launch.score_bins or score_bins(launch.session)
    material = Material(launch, comparison, final, bins)
    made = list(sections(material))
    bare = _written(material, made, Packed("", [], [], []))
    return _written(material, made, _packed(launch, comparison, explore, LARGEST - len(bare.encode()) - _SLACK))


def explorer_page(launch: Launch, comparison: Comparison, explore: Sequence[str] = ()) -> str:
    """Returns the query explorer alone as HTML; the trials `explore` come first. Raises ConfigError as `page` does."""
    if launch.session is None:
        raise ConfigError("explore: the launch has results only; load a launch from a store, or run an experiment")
    packed = _packed(launch, comparison, explore, LARGEST - 500_000)
    title = f"{launch.experiment.name}: queries"
    section = Section("explorer", "", [Explorer()])
    return rendered([section], title=title, scripts=EXPLORING, explorer_notes=packed.notes, data=_data(packed))


def _packed(launch: Launch, comparison: Comparison, explore: Sequence[str], budget: int) -> Packed:
    metrics = list(dict.fromkeys((comparison.metric, *launch.experiment.metrics, *launch.results[0].judged)))[:8]
    return pack(launch, metrics, _order(launch, comparison, explore), budget)


def _order(launch: Launch, comparison: Comparison, explore: Sequence[str]) -> list[int]:
    names = [result.name for result in launch.results]
    for name in explore:
        if name not in names:
            raise ConfigError(f"report: no trial '{name}'; trials: {', '.join(names)}")
    return list(dict.fromkeys([*(names.index(name) for name in explore), *comparison.by_importance]))


def _written(material: Material, made: list[Section], packed: Packed) -> str:
    name = material.launch.experiment.name
    return rendered(
        made,
        title=f"{name}: report",
        scripts=EXPLORING,
        name=name,
        question=material.launch.experiment.question,
        answer=answer(material.comparison),
        locked=conclusion(material.final) if material.final else "",
        explorer_notes=packed.notes,
        data=_data(packed),
    )


def _data(packed: Packed) -> list[tuple[str, str]]:
    """The explorer's data, each part with the id by which the page finds it."""
    data = [("index", packed.index)]
    data += [(f"block-{at}", block) for at, block in enumerate(packed.blocks)]
    return data + [(f"text-{at}", block) for at, block in enumerate(packed.texts)]


def rendered(made: Sequence[Section], *, title: str, scripts: Sequence[str] = ANSWERING, **more: Any) -> str:
    """Returns sections as a self-contained page; `more` is what the template shows besides, by its names there."""
    # One script, since what the browser may run is named by its hash.
    library = "\n".join(_resource(f"vendor/{name}") for name in _LIBRARIES[scripts])
    own = "\n".join(_resource(f"script/{name}") for name in scripts)
    script = f'{library}\n(() => {{\n"use strict";\n{own}}})();'
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    absent: dict[str, Any] = {"name": "", "question": "", "answer": "", "locked": "", "explorer_notes": [], "data": []}
    text = _template().render(
        absent | more,
        title=title,
        sections=made,
        script=Markup(script),
        script_hash=Markup(f"sha256-{digest}"),
        style=Markup(css() + _resource("style.css")),
    )
    # A query may contain a lone surrogate, which UTF-8 cannot encode.
    return text.encode("utf-8", "replace").decode()


def _resource(name: str) -> str:
    return files("reports.page").joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _template() -> "Template":
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_resource("page.html"))
