"""Saved views of the MLflow UI: a leaderboard, charts, per-query results and launches, each with its own link.

The format is internal to MLflow and undocumented: an experiment tag holds the page's state, compressed and
base64-encoded. Tested with 3.17; a version that does not know the tag shows its default page.
"""

import base64
import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.experiment.trial_names import SLOTS, varied
from harness.tracking.records import FinishedLaunch

LARGEST = 20_000
"""The maximum length of a saved view in MLflow, in characters."""


_WIDTHS = {"attributes.`Run Name`": 230, "attributes.`Created`": 110}
"""Of the columns that MLflow always shows, in pixels: a verdict is to be seen beside the assistant's panel."""


class View(NamedTuple):
    """A saved view: its key in the link, its name, the page's state, and further parameters of the link."""

    key: str
    name: str
    state: Mapping[str, Any]
    suffix: str = ""

    def encoded(self) -> str:
        """Return the value of the experiment tag. Raises ValueError if it is longer than MLflow accepts."""
        packed = zlib.compress(json.dumps(self.state, separators=(",", ":")).encode())
        now = int(time.time() * 1000)
        state = "deflate;" + base64.b64encode(packed).decode()
        text = json.dumps({"name": self.name, "createdAt": now, "updatedAt": now, "state": state})
        if len(text) > LARGEST:
            raise ValueError(f"view '{self.name}' has {len(text)} characters, MLflow takes {LARGEST}")
        return text


def views(launch: FinishedLaunch, keys: Sequence[str]) -> Iterator[View]:
    """Yield the views of a launch: its trials as a table, as charts and by query, and all launches of the experiment.

    `keys` are the MLflow keys of the requested metrics, the primary one, used for sorting, first.
    """
    primary = list(keys)[:8]
    varying = sorted(varied([result.params for result in launch.results]), key=lambda name: name not in SLOTS)
    # The values of the first axis are written outside of it, where there is room for few characters.
    longest = {name: max(len(result.params.get(name, "")) for result in launch.results) for name in varying[:5]}
    axes = sorted(longest, key=lambda name: name != min(longest, key=longest.__getitem__)) or ["chunker"]
    trials = f"tags.kind = 'trial' and tags.launch = '{launch.launch}'"
    tags = launch.report.columns
    # The name of a run says its settings. MLflow groups columns by kind, in the order of their first.
    columns = [f"tags.`{tag}`" for tag in tags]
    columns += [f"metrics.`{key}`" for key in (*primary, "context_tokens", "lat_p50_ms")]
    widths = _WIDTHS | {f"tags.`{tag}`": width for tag, width in tags.items() if width}
    shared = {**_state(trials, f"metrics.`{primary[0]}`", columns), "columnWidths": widths}
    # The leaderboard has the charts as well: MLflow's buttons above the table lead to them, its menu of views does not.
    drawn = {**shared, **_charts(primary[0], axes)}
    yield View("leaderboard", "Leaderboard", drawn)
    yield View("charts", "Charts", drawn, "&compareRunsMode=CHART")
    yield View("per-query", "Query by query", shared, "&compareRunsMode=ARTIFACT")
    facts = [f"tags.`{tag}`" for tag in ("top_trial", "trials", "final", "test_set_accesses")]
    launches = _state("tags.kind = 'launch'", "attributes.`Created`", [*facts, f"metrics.`{primary[0]}`"])
    yield View("launches", "Launches", launches)


def _state(query: str, order: str, columns: Sequence[str]) -> dict[str, Any]:
    return {
        "searchFilter": query,
        "orderByKey": order,
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "columnOrder": list(columns),
        "columnWidths": {},
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "runsHiddenMode": "SHOW_ALL",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": True,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": False,
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
        "compareRunCharts": [],
        "compareRunSections": [],
    }


def trend_view(keys: Sequence[str]) -> View:
    """Return the view of a regression gate's scheduled runs: a line chart over time per metric, one line per trial."""
    shared = _state(
        "tags.kind = 'trend'", "attributes.`Created`", [*(f"metrics.`{key}`" for key in keys), "tags.`gate`"]
    )
    charts = [
        _line(f"c{at}", "s0", key, xAxisKey="time", xAxisScaleType="linear", useGlobalXaxisKey=False)
        for at, key in enumerate(keys)
    ]
    section = _section("s0", "Scheduled runs of the regression gate")
    drawn = {"compareRunCharts": charts, "compareRunSections": [section]}
    return View("scheduled-runs", "Scheduled runs", {**shared, **drawn}, "&compareRunsMode=CHART")


def gate_view() -> View:
    """Return the view of all scheduled runs of a regression gate as a table: verdict, what got worse, what changed."""
    columns = [f"tags.`{tag}`" for tag in ("gate", "gate_worse", "gate_changed")]
    widths = _WIDTHS | {"tags.`gate_changed`": 520}
    state = _state("tags.kind = 'launch' and tags.gate != ''", "attributes.`Created`", columns)
    return View("gate", "Gate", {**state, "columnWidths": widths})


def _charts(metric: str, axes: Sequence[str]) -> dict[str, Any]:
    # Charts of all trials need the whole width; of the others, two go side by side.
    sections = {
        "s0": ("Which settings win", 1),
        "s1": ("Quality against cost", 2),
        "s2": ("Recall over rank and token budget", 2),
    }
    charts = [
        _chart(
            "c0",
            "PARALLEL",
            "s0",
            selectedParams=list(axes),
            selectedMetrics=["context_tokens", metric],
            showAllRuns=True,
        ),
        _chart("c1", "BAR", "s0", metricKey=metric),
        _chart("c2", "SCATTER", "s1", xaxis=_axis("context_tokens"), yaxis=_axis(metric)),
        _chart("c3", "SCATTER", "s1", xaxis=_axis("lat_p50_ms"), yaxis=_axis(metric)),
        *(
            _line(f"c{4 + at}", "s2", key, xAxisKey="step", xAxisScaleType="log", useGlobalXaxisKey=False)
            for at, key in enumerate(("curve/recall_vs_k", "curve/recall_vs_tokens"))
        ),
    ]
    return {
        "compareRunCharts": charts,
        "compareRunSections": [_section(key, *section) for key, section in sections.items()],
    }


def _section(key: str, name: str, columns: int = 2) -> dict[str, Any]:
    shown = {"display": True, "isReordered": True, "deleted": False, "isGenerated": False}
    return {"uuid": key, "name": name, **shown, "columns": columns, "cardHeight": 400}


def _line(key: str, section: str, metric: str, **settings: Any) -> dict[str, Any]:
    shared = {"scaleType": "linear", "lineSmoothness": 0, "useGlobalLineSmoothing": False, "range": {}}
    return _chart(key, "LINE", section, metricKey=metric, selectedMetricKeys=[metric], **shared, **settings)


def _axis(metric: str) -> dict[str, str]:
    return {"key": metric, "type": "METRIC"}


def _chart(key: str, kind: str, section: str, **settings: Any) -> dict[str, Any]:
    shared = {"deleted": False, "isGenerated": False, "runsCountToCompare": 500}
    return {"uuid": key, "type": kind, "metricSectionId": section, **shared, **settings}
