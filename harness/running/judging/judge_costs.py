"""What judging is expected to cost, before a model is asked."""

from collections.abc import Sequence
from dataclasses import replace

from harness.core.records import Case, Chunk, Query, Span
from harness.llm import Estimate, all_missing, estimate
from harness.running.judging.claims import given
from harness.running.judging.judge_summary import JudgeSummary
from harness.running.judging.judge_tasks import TaskPool


def expected_judging(pool: TaskPool) -> list[JudgeSummary]:
    """Return a summary for each judge with its calls and their expected cost; all selections must be stored."""
    made = []
    lefts = iter(all_missing(pool.answers, pool.wanted))
    for one in pool.by_judge:
        prompter = one.prompter
        if prompter is None:
            made.append(JudgeSummary(one.name, "", judgments=len(one.tasks), empty=one.empty))
            continue
        cost = estimate(pool.answers, prompter, next(lefts), pool.price)
        pooled = len(prompter.batches(list(one.tasks)))
        made.append(
            JudgeSummary(
                one.name,
                prompter.model,
                naive=one.naive,
                pooled=pooled,
                missing=cost.calls,
                judgments=len(one.tasks),
                estimate=cost,
                empty=one.empty,
            )
        )
    return made


def judging_bounds(pool: TaskPool) -> dict[str, Estimate]:
    """Return an upper bound on the cost of each language-model judge, by label, before anything is retrieved.

    It assumes that nothing is stored or pooled, and that every query selects the longest passages of the corpus, as
    many as the retriever and the selector allow.
    """
    bounds: dict[str, Estimate] = {}
    for trial in pool.session.trials:
        outputs = pool.session.outputs(trial)
        limits = [step.k for step in trial.selector if isinstance(step.k, int)]
        longest = outputs.longest_chunks(min([trial.retriever.depth, *limits]))
        for label, judge in pool.judges.items():
            if judge.prompter is None:
                continue
            tasks = [task for query in outputs.queries for task in judge.tasks(_unfound(query, longest))]
            cost = estimate(pool.answers, judge.prompter, tasks, pool.price)
            bounds[label] = bounds.get(label, Estimate()).plus(cost)
    return bounds


def _unfound(query: Query, passages: Sequence[Chunk]) -> Case:
    """A case whose evidence is in none of the passages, so that a judge needs a call for every item."""
    items = tuple(f"{number}: {query.text}" for number, _ in enumerate(query.evidence, 1))
    nowhere = tuple(replace(item, places=(Span("\0", 0, 1),)) for item in query.evidence)
    claims = given(Case(query, (), ())) or tuple((query.answer or "").split(". "))
    return Case(replace(query, evidence=nowhere), items, tuple(passages), claims)
