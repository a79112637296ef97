"""The result of running an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.core.notebook_views import view
from harness.evaluation.results import ScoreBins, TrialResult
from harness.experiment.experiment import Experiment
from harness.running.frames import queries_frame, rankings_frame, trials_frame
from harness.running.judging.judge_summary import JudgingReport
from harness.running.judging.judging import Judging
from harness.running.primary_metric import primary_metric
from harness.running.session import Session
from harness.tracking import Links

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Launch:
    """One execution of an experiment: the results of its trials, in grid order, and the work it took.

    `work` counts what was computed, by stage (texts for `embed`, calls for `ask`, artifacts for the others); it is
    empty if everything was stored. `seconds` is the duration. `logged` are links to where it was logged, by
    destination. `session` gives access to the documents, passages and files behind the results, `judging` to the
    judgment of each passage; a launch built from results alone has neither.
    """

    id: str
    experiment: Experiment
    results: Sequence[TrialResult]
    work: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: Sequence[str] = ()
    logged: Links = field(default_factory=dict)
    judging_report: JudgingReport = field(default_factory=JudgingReport)
    score_bins: Sequence[ScoreBins] = ()
    """How often hits are relevant in each bin of cosines, for each embedder that a trial searches by cosine."""
    session: Session | None = None
    judging: Judging | None = None

    def __repr__(self) -> str:
        means = {result.name: round(result.mean(self.primary), 4) for result in self.results[:3]}
        more = f" and {len(self.results) - 3} more" if len(self.results) > 3 else ""
        return f"<Launch {self.id or 'stored'} of '{self.experiment.name}': {self.primary} {means}{more}>"

    @property
    def links(self) -> dict[str, str]:
        """The links of all destinations, by name."""
        return {name: link for pages in self.logged.values() for name, link in pages.items()}

    @property
    def primary(self) -> str:
        """The metric that the trials are compared on."""
        return primary_metric(self.experiment, self.results)

    @property
    def metrics(self) -> list[str]:
        """The requested metrics and the judges' measures, the primary metric first."""
        return list(dict.fromkeys((self.primary, *self.experiment.metrics, *self.experiment.judged)))

    def frame(self) -> "DataFrame":
        """Return a data frame with a row per trial: its params that vary, the means of its metrics, and its costs."""
        return trials_frame(self.results, self.metrics)

    def per_query(self) -> "DataFrame":
        """Return a data frame with a row per trial and query, and the values of all metrics."""
        return queries_frame(self.results, self.metrics)

    def rankings(self) -> "DataFrame":
        """Return a data frame with a row per trial, query and retrieved hit. The launch must have a session."""
        assert self.session is not None
        return rankings_frame(self.session)

    def explore(self, *trials: str, on: str | None = None) -> Any:
        """Return the query explorer, a `View` that a notebook shows: two trials side by side, query by query.

        `trials` are those to begin with (default: the baseline and the best), `on` the metric. Raises ConfigError for
        an unknown trial or metric, or a launch without a session.
        """
        return view(self, "explore", *trials, on=on)

    @property
    def withheld(self) -> list[str]:
        """The judges' measures whose mean is withheld in some trial because too many queries have no value."""
        return list(dict.fromkeys(name for result in self.results for name, j in result.judged.items() if j.withheld))
