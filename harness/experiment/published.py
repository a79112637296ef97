"""Figures that others have published, to hold an experiment's own against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

KAPPAS = ("kappa", "graded_kappa")
"""What a row about a judge may give: Cohen's kappa of relevant against not, and of all grades, unweighted."""


@dataclass(frozen=True)
class PublishedRow:
    """One row of a published table: values of the trial with these params, or of a judge, by metric.

    `differs` says why the figure is known not to be reached; the row is shown, and not counted as a difference.
    """

    values: Mapping[str, float]
    trial: Mapping[str, str] = field(default_factory=dict)
    judge: str = ""
    differs: str = ""


@dataclass(frozen=True)
class Published:
    """A published table: where it is from, its rows, and how far a value may be off.

    `people` is the file of people's labels that judges are compared with, where rows are about judges.
    """

    source: str
    rows: Sequence[PublishedRow]
    tolerance: float
    people: str = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics and facts that rows about trials give."""
        return tuple(dict.fromkeys(name for row in self.rows if not row.judge for name in row.values))
