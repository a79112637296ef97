"""What running an experiment leaves in one's hands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.evaluation.results import ScoreBins, TrialResult
from harness.experiment.experiment import Experiment
from harness.running.judging.judge_summary import JudgingReport
from harness.running.judging.judging import Judging
from harness.running.session import Session


class Findings(NamedTuple):
    """What a report has to say of a launch: files to keep beside it, and tags for each trial, by name."""

    files: Mapping[str, bytes]
    tags: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Launch:
    """One execution of an experiment: the results of its trials, in grid order, and the work it took.

    `work` counts what had to be done, by stage (texts for `embed`, artifacts for the others): empty where everything
    was stored. `links` are the pages that show the launch in the MLflow UI. `session` reaches the documents, passages
    and files behind the results, `judging` what the judges said of each passage; a launch made up from results alone
    has neither.
    """

    id: str
    experiment: Experiment
    results: Sequence[TrialResult]
    work: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    judging_report: JudgingReport = field(default_factory=JudgingReport)
    score_bins: Sequence[ScoreBins] = ()
    """What the scores of each embedder mean, where a trial searches it by cosine."""
    session: Session | None = None
    judging: Judging | None = None

    @property
    def withheld(self) -> list[str]:
        """Measures of judges that have no mean in some trial, because too many queries have no value."""
        return list(dict.fromkeys(name for result in self.results for name, j in result.judged.items() if j.withheld))
