"""The tasks of all judges, pooled over all trials of a launch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from harness.components.component import step_labels
from harness.components.roles import Judge
from harness.core.blame import blamed, understood
from harness.core.errors import ConfigError
from harness.core.records import Case
from harness.experiment.trial import Trial
from harness.llm import AnswerCache, Prompter, Task
from harness.running.judging.claims import Claims
from harness.running.session import Session
from harness.running.stages.model_access import PriceGiven


@dataclass
class JudgeTasks:
    """The distinct tasks of one judge over all trials, in a dict used as an ordered set.

    `naive` is the number of calls if each trial were judged separately, `empty` the number of cases without passages.
    """

    name: str
    judge: Judge
    tasks: dict[Task, None] = field(default_factory=dict)
    naive: int = 0
    empty: int = 0

    @property
    def prompter(self) -> Prompter | None:
        """What asks a language model for the judgments; None if the judge decides itself."""
        return self.judge.prompter


class TaskPool:
    """The tasks of the judges of a session, whose selections must be stored before they are listed.

    Raises ConfigError if a judge needs answers or evidence text that the queries do not have.
    """

    def __init__(self, session: Session, answers: AnswerCache, price: PriceGiven) -> None:
        self.session, self.answers, self.price = session, answers, price
        judges = session.trials[0].judges
        self.judges = dict(zip(step_labels(judges), judges, strict=True))
        self.claims = Claims(session, answers, judges, price)
        self._texts: dict[str, str] = {}
        for judge in judges:
            self._refuse_unjudgeable(judge)

    def _refuse_unjudgeable(self, judge: Judge) -> None:
        queries = self.session.outputs(self.session.trials[0]).queries
        message = f"judges: {judge.name()}: "
        items = judge.of
        answered = any(query.answer or query.metadata.get("claims") for query in queries)
        spans = any(query.evidence and not query.by_document for query in queries)
        if items == "evidence" and any(query.by_document for query in queries):
            other = "; set `of: answer`" if answered and judge.prompter else ""
            raise ConfigError(f"{message}document-level evidence has no text to look for; use recall@k{other}")
        if items == "answer" and not answered:
            raise ConfigError(f"{message}no query has an answer{'; set `of: evidence`' if spans else ''}")

    @cached_property
    def by_judge(self) -> list[JudgeTasks]:
        """The distinct tasks of each judge over all trials. Missing claims must have been requested before."""
        pools = [JudgeTasks(name, judge) for name, judge in self.judges.items()]
        for trial in self.session.trials:
            for pool, cases in self._cases(trial, pools):
                tasks: dict[Task, None] = {}
                for case in cases:
                    where = f"judge {pool.name}: query '{case.query.id}'"
                    with blamed(pool.judge, where):
                        asked = pool.judge.tasks(case)
                    with understood(f"{where}: tasks", "a list of Tasks"):
                        tasks.update(dict.fromkeys(self._shared(task) for task in asked))
                    pool.empty += not case.passages
                pool.naive += len(pool.prompter.batches(list(tasks))) if pool.prompter else 0
                pool.tasks.update(tasks)
        for pool in pools:
            if pool.prompter and pool.judge.repeats > 1 and pool.tasks and not any(task.take for task in pool.tasks):
                raise ConfigError(f"judge {pool.name}: repeats: its tasks have no `take`; leave repeats out")
        return pools

    @property
    def wanted(self) -> list[tuple[Prompter, list[Task]]]:
        """The tasks of the judges that ask a language model, stored or not."""
        return [(pool.prompter, list(pool.tasks)) for pool in self.by_judge if pool.prompter]

    def cases(self, trial: Trial) -> Iterator[tuple[JudgeTasks, list[Case]]]:
        """Yield what each judge sees of the queries of a trial, with the claims that it needs."""
        yield from self._cases(trial, self.by_judge)

    def _cases(self, trial: Trial, pools: list[JudgeTasks]) -> Iterator[tuple[JudgeTasks, list[Case]]]:
        cases = list(self.session.outputs(trial).cases())
        for pool in pools:
            prompter = pool.judge.claims()
            yield pool, self.claims.put_into(cases, prompter) if prompter else cases

    def _shared(self, task: Task) -> Task:
        """The task with its texts shared in memory among all trials that select them."""
        return task._replace(texts=tuple(self._texts.setdefault(text, text) for text in task.texts))
