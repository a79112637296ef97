"""Claims of reference answers, for the judges that need them: given in the data, else extracted once by a model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.components.llm_roles import claims_task
from harness.components.roles import Judge
from harness.core.records import Case
from harness.llm import (
    AnswerCache,
    BatchRunner,
    Caller,
    Completion,
    Estimate,
    Prompter,
    Task,
    all_missing,
    estimate,
    stored,
)
from harness.running.session import Session


class Claims:
    """The claims that the judges of a session need, the same for all trials. False if no judge needs claims."""

    def __init__(
        self, session: Session, answers: AnswerCache, judges: Sequence[Judge], price: tuple[float, float] | None
    ) -> None:
        self._session, self._answers, self._price = session, answers, price
        self._prompters = [prompter for judge in judges if (prompter := judge.claims())]

    def _cases(self) -> Iterator[Case]:
        trial = self._session.trials[0]  # all trials have the same queries
        return self._session.outputs(trial).cases()

    def tasks(self) -> list[tuple[Prompter, list[Task]]]:
        """Return a task for each reference answer without claims in the data, stored or not, for each prompter."""
        if not self._prompters:
            return []
        tasks = [claims_task(case) for case in self._cases() if case.query.answer and given(case) is None]
        return [(prompter, tasks) for prompter in self._prompters]

    def estimate(self) -> Estimate:
        """Return the expected cost of extracting the claims that are not stored."""
        total, wanted = Estimate(), self.tasks()
        for (prompter, _), left in zip(wanted, all_missing(self._answers, wanted), strict=True):
            total = total.plus(estimate(self._answers, prompter, left, self._price))
        return total

    def ask(self, caller: Caller) -> None:
        """Request the claims that are not stored."""
        BatchRunner(caller).ask(self.tasks(), "list claims")

    def put_into(self, cases: Sequence[Case], prompter: Prompter) -> list[Case]:
        """Return the cases with their claims: empty if there is no reference answer, None if extraction failed."""
        known = stored(self._answers, prompter, [claims_task(case) for case in cases if case.query.answer])
        made = []
        for case in cases:
            claims = given(case)
            if claims is None and not case.query.answer:
                claims = ()
            elif claims is None:
                found = known[claims_task(case)]
                claims = found.texts if isinstance(found, Completion) else None
            made.append(replace(case, claims=claims))
        return made

    def by_query(self) -> dict[str, tuple[str, ...]]:
        """Return the known claims by query id; queries without any are left out."""
        cases = self.put_into(list(self._cases()), self._prompters[0])
        return {case.query.id: case.claims for case in cases if case.claims}

    def __bool__(self) -> bool:
        return bool(self._prompters)


def given(case: Case) -> tuple[str, ...] | None:
    """Return the claims in the query's metadata; None if it has none."""
    claims = case.query.metadata.get("claims")
    return tuple(map(str, claims)) if isinstance(claims, list) else None
