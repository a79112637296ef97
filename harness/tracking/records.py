"""What is logged of trials, launches and scheduled runs: the records that every tracker takes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.data.manifest import Manifest
from harness.evaluation.results import TrialResult
from harness.storage.digest import digest


class LoggedData(NamedTuple):
    """The data set and the query set of a trial."""

    manifest: Manifest
    queries: str

    @property
    def name(self) -> str:
        """The names of both."""
        return f"{self.manifest.name}@{self.queries}"

    @property
    def hashes(self) -> dict[str, str]:
        """The sha256 of both."""
        return {"corpus": self.manifest.corpus.sha256, "queries": self.manifest.query_set(self.queries).sha256}

    @property
    def digest(self) -> str:
        """What identifies the content of both."""
        return digest(self.hashes)

    @property
    def synthetic(self) -> bool:
        """Whether a language model wrote the queries."""
        return self.manifest.query_set(self.queries).synthetic


class FinishedTrial(NamedTuple):
    """What is logged of a trial: its result, the requested metrics, its data set and its per-query records.

    `rows` returns the records and is called only if needed. `settings` is the trial as JSON, `source` the experiment
    file, `final` whether the trial was scored on the locked query set.
    """

    result: TrialResult
    metrics: Sequence[str]
    dataset: Manifest
    rows: Callable[[], Iterable[Mapping[str, Any]]]
    settings: str
    source: str
    final: bool

    @property
    def data(self) -> LoggedData:
        """The data set and the query set."""
        return LoggedData(self.dataset, self.result.params["queries"])


class ReportOutput(NamedTuple):
    """What a report adds to a launch: `files` by name, and `tags` for each trial, by trial name.

    `comparison.md` among the files also becomes the note of the launch. `columns` are the tags that a table of trials
    shows, with the widths in pixels that their texts need (0: any).
    """

    files: Mapping[str, bytes] = {}
    tags: Mapping[str, Mapping[str, str]] = {}
    columns: Mapping[str, int] = {}


class FinishedLaunch(NamedTuple):
    """What is logged of a launch: its results, the requested metrics (the primary one first), and its circumstances.

    `begun` is its start in seconds since the epoch; `synthetic` whether a language model wrote the queries;
    `test_set_accesses` the number of accesses to the locked query set; `work` the work done, by stage; `spend` the use
    of language models. `tags` and `notes` are the user's; `partial` says what part of the experiment this is, if any.
    At most `traces` queries of the trials `traced`, the best one and the baseline, are shown one by one.
    """

    launch: str
    results: Sequence[TrialResult]
    metrics: Sequence[str]
    begun: float
    final: bool
    synthetic: bool
    test_set_accesses: int
    work: Mapping[str, int]
    spend: Mapping[str, float]
    report: ReportOutput = ReportOutput()
    tags: Mapping[str, str] = {}
    notes: str = ""
    partial: str = ""
    traced: Sequence[FinishedTrial] = ()
    traces: int = 0

    @property
    def top(self) -> TrialResult:
        """The trial with the highest mean on the primary metric, missing judgments counted as the lowest value."""
        return max(self.results, key=lambda result: (result.min_mean(self.metrics[0]), result.name))


class TrendPoint(NamedTuple):
    """One metric of one trial in a scheduled run; NaN if there is no value.

    The mean and its 95 % interval, the mean in the baseline, and the code of the gate's verdict.
    """

    mean: float
    low: float
    high: float
    baseline: float
    verdict: float


class ScheduledRun(NamedTuple):
    """One trial in a scheduled run: its time in milliseconds since the epoch, and a point for each gated metric."""

    when: int
    points: Mapping[str, TrendPoint]


class FinishedGate(NamedTuple):
    """What is logged of a scheduled run: its launch, the verdict, runs by trial, files by name, and tags."""

    launch: str
    verdict: str
    runs: Mapping[str, ScheduledRun]
    files: Mapping[str, bytes]
    tags: Mapping[str, str] = {}

    @property
    def metrics(self) -> list[str]:
        """The gated metrics."""
        return list(dict.fromkeys(metric for run in self.runs.values() for metric in run.points))
