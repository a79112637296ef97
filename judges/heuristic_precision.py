"""Does each passage bear on the evidence? By places and words, without a language model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Positive, post_answer
from harness.components.roles import LocalJudge
from harness.components.verdict import Finding, Score, Verdict, share
from harness.core.records import Case, Chunk, Vectors
from harness.llm import Judgment, Label, Task
from judges.support import CAUTION, supported


@dataclass(frozen=True)
class HeuristicPrecision(LocalJudge):
    """The share of the first `k` passages that hold evidence or support what it says. No language model is asked.

    A passage that shares half of itself, or of a place of evidence, with it is relevant; so is a chunk of a document
    that is evidence as a whole. Any other is if it supports the text of an item, or the reference answer where there
    is no evidence: by words and, with `sentences`, by a sentence encoder. A screen, not a judge: see `judges.support`
    for how well it does.
    """

    k: Positive | None = post_answer(None)
    sentences: bool = False

    measures: ClassVar[tuple[str, ...]] = ("heuristic_precision",)
    divided_by_k: ClassVar[tuple[str, ...]] = ("heuristic_precision",)

    def caution(self) -> str:
        return CAUTION

    def tasks(self, case: Case) -> list[Task]:
        open_ = [passage for passage in case.passages[: self.k] if not _bears(case, passage)]
        return [Task("", (passage.text,), item) for passage in open_ for item in _needed(case)]

    def packages(self) -> dict[str, str]:
        return {"torch": "local", "sentence_transformers": "local"} if self.sentences else {}

    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        return supported(tasks, embed if self.sentences else None)

    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        passages = case.passages[: self.k]
        if not case.query.evidence and not _needed(case):
            return Verdict({"heuristic_precision": None})
        labels = [self._label(case, passage, judgments) for passage in passages]
        value = share([label.grade > 0 for label in labels], self.k or len(labels)) if labels else Score.exactly(0.0)
        findings = tuple(Finding(rank, "", (label,)) for rank, label in enumerate(labels, 1))
        return Verdict({"heuristic_precision": value}, findings, () if passages else ("empty_retrieval",))

    def _label(self, case: Case, passage: Chunk, judgments: Mapping[Task, Judgment]) -> Label:
        if _bears(case, passage):
            return Label(2, "overlaps evidence", by="exact")
        found = [judgments[Task("", (passage.text,), item)] for item in _needed(case)]
        labels = [one for one in found if isinstance(one, Label)]
        return max(labels, key=lambda label: label.grade, default=Label(0, "in no document of evidence", by="exact"))


def _needed(case: Case) -> Sequence[str]:
    """The statements a passage may support."""
    if case.query.evidence:
        return case.evidence
    return (case.query.answer,) if case.query.answer else ()


def _bears(case: Case, passage: Chunk) -> bool:
    """Whether a passage shares half of the shorter of the two with a place of evidence."""
    for item in case.query.evidence:
        for doc, start, end in item.places:
            if doc == passage.doc:
                shared = min(end, passage.end) - max(start, passage.start)
                if item.whole or shared >= 0.5 * min(end - start, passage.end - passage.start):
                    return True
    return False
