"""Published figures, to compare the results of an experiment with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

KAPPAS = ("kappa", "graded_kappa")
"""The values of a row about a judge: Cohen's kappa of relevant or not, and unweighted kappa of all grades."""


@dataclass(frozen=True)
class PublishedRow:
    """One row of a published table: values by metric, of the trial with these params or of a judge.

    `differs` is the known reason why the figure is not reproduced; such a row is shown but not counted as a difference.
    """

    values: Mapping[str, float]
    trial: Mapping[str, str] = field(default_factory=dict)
    judge: str = ""
    differs: str = ""


@dataclass(frozen=True)
class Published:
    """A published table: its source, its rows, and the tolerance for a difference.

    `people` is the file of human labels that judges are compared with, if rows are about judges.
    """

    source: str
    rows: Sequence[PublishedRow]
    tolerance: float
    people: str = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics and facts in the rows about trials."""
        return tuple(dict.fromkeys(name for row in self.rows if not row.judge for name in row.values))
