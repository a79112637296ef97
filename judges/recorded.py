"""A judge that reads recorded grades from a file; no server is called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from harness.components.component import Positive, post_answer, runtime
from harness.components.labels import Labels, labels_sha256, read_labels
from harness.components.roles import LocalJudge
from harness.components.verdict import Finding, Score, Verdict, average_precision, fraction_relevant
from harness.core.records import Case, Chunk, Vectors
from harness.llm import Failure, Judgment, Label, Task


@dataclass(frozen=True)
class Recorded(LocalJudge):
    """The fraction of passages that are relevant by recorded grades. No language model is called.

    `labels` is a file of grades: CSV or JSON lines with a query, a passage and a grade, or qrels. Queries are matched
    by id or text; passages by `document:start-end`, document or text, whichever the file has. A passage without a
    grade is a failure. As in `context_precision`, the first `k` passages count, and a passage is relevant if its grade
    is at least `relevant_from`. The mean is withheld if more than the fraction `max_failed` of queries has no value.
    """

    labels: str = runtime("")
    k: Positive | None = post_answer(None)
    relevant_from: Annotated[int, Field(ge=1, le=9)] = post_answer(2)
    max_failed: Annotated[float, Field(ge=0, le=1)] = post_answer(0.02)

    paths: ClassVar[tuple[str, ...]] = ("labels",)
    measures: ClassVar[tuple[str, ...]] = ("recorded_precision", "recorded_ap_retrieved", "recorded_ap_at_k")
    divided_by_k: ClassVar[tuple[str, ...]] = ("recorded_precision", "recorded_ap_at_k")

    @property
    def grader(self) -> str:
        """The name of the file of grades."""
        return Path(self.labels).stem

    def problem(self) -> str | None:
        """Why these settings cannot be used, or None."""
        if not self.labels:
            return "labels: set this to the file of recorded grades"
        return None if Path(self.labels).is_file() else f"labels: {self.labels} does not exist"

    def caution(self) -> str:
        """A note on how to read the scores."""
        return f"grades recorded in {Path(self.labels).name}; no language model was called"

    def facts(self) -> dict[str, str]:
        """The digest of the file, which makes its content part of the identity."""
        return {"labels": labels_sha256(Path(self.labels))}

    def tasks(self, case: Case) -> list[Task]:
        """One task per passage among the first k."""
        return [_task(case, passage) for passage in case.passages[: self.k]]

    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """The recorded grade of each task, or a failure `missing_label`. Reads the file again if it has changed."""
        known = _read(self.labels, labels_sha256(Path(self.labels)))
        return {task: _recorded(task, known) for task in tasks}

    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        """The scores of a query with a finding per passage; 0 if nothing was retrieved."""
        found = [judgments[_task(case, passage)] for passage in case.passages[: self.k]]
        known = [None if isinstance(one, Failure) else one.grade >= self.relevant_from for one in found]
        of = self.k or len(known)
        values = (fraction_relevant(known, of), average_precision(known), average_precision(known, of)) if known else ()
        scores = dict(zip(self.measures, values or [Score.exactly(0.0)] * 3, strict=True))
        findings = tuple(Finding(rank, "", (judgment,)) for rank, judgment in enumerate(found, 1))
        return Verdict(scores, findings, () if found else ("empty_retrieval",))


def _task(case: Case, passage: Chunk) -> Task:
    """A task with all the names of a passage; equal texts at two places are two tasks."""
    return Task(case.query.text, (passage.text,), passage.id, f"{case.query.id}\0{passage.doc}")


def _recorded(task: Task, labels: Labels) -> Judgment:
    query, _, doc = task.reference.partition("\0")
    grades = set(labels.of((query, task.query), (task.item, doc, task.texts[0])))
    if len(grades) == 1:
        return Label(grades.pop(), by="recorded")
    message = "has conflicting grades; keep one of them" if grades else "has no grade"
    return Failure("missing_label", f"{labels.path.name}: passage {task.item} of query '{query}' {message}")


@lru_cache(maxsize=4)
def _read(path: str, sha256: str) -> Labels:
    # The hash is part of the cache key, so that an edited file is read again.
    return read_labels(Path(path))
