"""Heuristic context precision: relevance of passages by spans and words, without a language model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Positive, post_answer
from harness.components.roles import LocalJudge
from harness.components.verdict import Finding, Score, Verdict, fraction_relevant
from harness.core.records import Case, Chunk, Vectors
from harness.llm import Judgment, Label, Task
from judges.support import CAUTION, supported


@dataclass(frozen=True)
class HeuristicPrecision(LocalJudge):
    """The fraction of the first `k` passages that overlap or support the evidence. No language model is called.

    A passage is relevant if it overlaps an evidence span by at least half of the shorter of the two, or if its document
    is evidence at document level. Otherwise it is relevant if it supports the text of an evidence item, or the
    reference answer if there is no evidence: by words and, with `sentences`, by a sentence encoder. A rough screen, not
    a substitute for a judge; `judges.support` states its agreement with people.
    """

    k: Positive | None = post_answer(None)
    sentences: bool = False

    measures: ClassVar[tuple[str, ...]] = ("heuristic_precision",)
    divided_by_k: ClassVar[tuple[str, ...]] = ("heuristic_precision",)

    def caution(self) -> str:
        """A note on how to read the scores."""
        return CAUTION

    def tasks(self, case: Case) -> list[Task]:
        """One task per passage without overlap and statement."""
        open_ = [passage for passage in case.passages[: self.k] if not _overlaps(case, passage)]
        return [Task("", (passage.text,), item) for passage in open_ for item in _needed(case)]

    def packages(self) -> dict[str, str]:
        """The packages that `sentences` needs, with the extra that installs them."""
        return {"torch": "local", "sentence_transformers": "local"} if self.sentences else {}

    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """The judgments by `judges.support`; `embed` maps texts to unit vectors (texts, dimensions)."""
        return supported(tasks, embed if self.sentences else None)

    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        """The score of a query; None if it has neither evidence nor a reference answer, 0 if nothing was retrieved."""
        passages = case.passages[: self.k]
        if not case.query.evidence and not _needed(case):
            return Verdict({"heuristic_precision": None})
        labels = [self._label(case, passage, judgments) for passage in passages]
        value = (
            fraction_relevant([label.grade > 0 for label in labels], self.k or len(labels))
            if labels
            else Score.exactly(0.0)
        )
        findings = tuple(Finding(rank, "", (label,)) for rank, label in enumerate(labels, 1))
        return Verdict({"heuristic_precision": value}, findings, () if passages else ("empty_retrieval",))

    def _label(self, case: Case, passage: Chunk, judgments: Mapping[Task, Judgment]) -> Label:
        if _overlaps(case, passage):
            return Label(2, "overlaps evidence", by="exact")
        found = [judgments[Task("", (passage.text,), item)] for item in _needed(case)]
        labels = [one for one in found if isinstance(one, Label)]
        return max(labels, key=lambda label: label.grade, default=Label(0, "not in an evidence document", by="exact"))


def _needed(case: Case) -> Sequence[str]:
    """The statements a passage may support."""
    if case.query.evidence:
        return case.evidence
    return (case.query.answer,) if case.query.answer else ()


def _overlaps(case: Case, passage: Chunk) -> bool:
    """Whether a passage overlaps an evidence span by half of the shorter one, or its whole document is evidence."""
    for item in case.query.evidence:
        for doc, start, end in item.places:
            if doc == passage.doc:
                shared = min(end, passage.end) - max(start, passage.start)
                if item.whole or shared >= 0.5 * min(end - start, passage.end - passage.start):
                    return True
    return False
