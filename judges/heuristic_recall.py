"""Heuristic context recall: evidence found in the passages by spans and words, without a language model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from harness.components.component import Fraction, Positive, post_answer
from harness.components.roles import LocalJudge
from harness.components.verdict import Finding, Score, Verdict, fraction_relevant
from harness.core.records import Case, Vectors
from harness.llm import Judgment, Label, Task
from judges.exact import exact_label
from judges.support import CAUTION, supported


@dataclass(frozen=True)
class HeuristicRecall(LocalJudge):
    """The fraction of evidence items that the first `k` passages contain or support. No language model is called.

    An item is found if its text occurs in a passage, or if the passages cover the fraction `overlap` of one of its
    spans. Otherwise it is found if one passage contains all its numbers and supports it by words and, with `sentences`,
    by a sentence encoder. A rough screen, not a substitute for a judge; `judges.support` states its agreement with
    people.
    """

    k: Positive | None = post_answer(None)
    overlap: Annotated[Fraction, Field(gt=0)] = post_answer(0.9)
    sentences: bool = False

    measures: ClassVar[tuple[str, ...]] = ("heuristic_recall",)
    of = "evidence"

    def caution(self) -> str:
        """A note on how to read the scores."""
        return CAUTION

    def tasks(self, case: Case) -> list[Task]:
        """One task per passage and item without an exact match."""
        open_ = [item for at, item in enumerate(case.evidence) if not exact_label(case, at, item, self.k, self.overlap)]
        return [Task("", (passage.text,), item) for item in open_ for passage in case.passages[: self.k]]

    def packages(self) -> dict[str, str]:
        """The packages that `sentences` needs, with the extra that installs them."""
        return {"torch": "local", "sentence_transformers": "local"} if self.sentences else {}

    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """The judgments by `judges.support`; `embed` maps texts to unit vectors (texts, dimensions)."""
        return supported(tasks, embed if self.sentences else None)

    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        """The score of a query with a finding per item; None if it has no evidence."""
        if not case.evidence:
            return Verdict({"heuristic_recall": None})
        labels = [self._label(case, at, item, judgments) for at, item in enumerate(case.evidence)]
        value: Score = fraction_relevant([label.grade == 2 for label in labels], len(labels))
        findings = tuple(Finding(None, item, (label,)) for item, label in zip(case.evidence, labels, strict=True))
        return Verdict({"heuristic_recall": value}, findings, () if case.passages else ("empty_retrieval",))

    def _label(self, case: Case, at: int, item: str, judgments: Mapping[Task, Judgment]) -> Label:
        exact = exact_label(case, at, item, self.k, self.overlap)
        if exact:
            return exact
        best = Label(0, "nothing was retrieved", by="exact")
        for rank, passage in enumerate(case.passages[: self.k], 1):
            found = judgments[Task("", (passage.text,), item)]
            if isinstance(found, Label) and (rank == 1 or found.grade > best.grade):
                best = replace(found, why=f"passage {rank}: {found.why}")
        return best
