"""The report's figures as inline SVG, in the page's own colours for light and dark mode.

Lines and points differ in dash and shape as well as in colour; see `reports.appearance`. Each figure can be drawn for a
column of the page or for a phone, and its elements know their trial and their values, which the page shows.
"""

from reports.page.figures.curves import Point, Series, budget_curves, curves, pareto, pareto_front, recall_series
from reports.page.figures.distributions import bin_bars, shape_of_data
from reports.page.figures.drawing import NARROW, WIDE, standalone, trial_key
from reports.page.figures.rows import MOST_ROWS, factor_bars, forest, loss_bars, outcomes_of
from reports.page.figures.scheduled import RunSeries, scheduled_runs

__all__ = [
    "MOST_ROWS",
    "NARROW",
    "WIDE",
    "Point",
    "RunSeries",
    "Series",
    "bin_bars",
    "budget_curves",
    "curves",
    "factor_bars",
    "forest",
    "loss_bars",
    "outcomes_of",
    "pareto",
    "pareto_front",
    "recall_series",
    "scheduled_runs",
    "shape_of_data",
    "standalone",
    "trial_key",
]
