"""The result of running an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.evaluation.results import ScoreBins, TrialResult
from harness.experiment.experiment import Experiment
from harness.running.judging.judge_summary import JudgingReport
from harness.running.judging.judging import Judging
from harness.running.session import Session


class Findings(NamedTuple):
    """What a report adds to a launch in MLflow: `files` by name, and `tags` for each trial, by trial name."""

    files: Mapping[str, bytes]
    tags: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Launch:
    """One execution of an experiment: the results of its trials, in grid order, and the work it took.

    `work` counts what was computed, by stage (texts for `embed`, calls for `ask`, artifacts for the others); it is
    empty if everything was stored. `seconds` is the duration. `links` are the pages that show the launch in the MLflow
    UI. `session` gives access to the documents, passages and files behind the results, `judging` to the judgment of
    each passage; a launch built from results alone has neither.
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
    """How often hits are relevant in each bin of cosines, for each embedder that a trial searches by cosine."""
    session: Session | None = None
    judging: Judging | None = None

    @property
    def withheld(self) -> list[str]:
        """The judges' measures whose mean is withheld in some trial because too many queries have no value."""
        return list(dict.fromkeys(name for result in self.results for name, j in result.judged.items() if j.withheld))
