"""Answers many tasks: stored answers are reused, the rest is sent in concurrent batches, all outcomes are stored."""

import asyncio
import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from harness.core.progress import progress
from harness.llm.answer_cache import AnswerCache, Call
from harness.llm.answer_schema import Reading
from harness.llm.answers import Failure, Outcome
from harness.llm.blocking import blocking
from harness.llm.caller import Caller
from harness.llm.prices import Usage, find_price
from harness.llm.prompter import Prompt, Prompter, Task
from harness.llm.request import output_limit, prompt_bytes

_TYPICAL_BYTES = 4.0
"""Bytes of English text per token, used until the model's own ratio is known."""

_WORTH_SPLITTING = {"truncated", "context_too_long", "refusal", "content_filter"}
"""Failures of a whole answer that a smaller batch may avoid."""

_AT_ONCE = 64
"""Batches processed concurrently; the rate limiter decides how many of their requests are in flight."""

Work = tuple[Prompter, tuple[Task, ...]]


class Estimate(NamedTuple):
    """An estimate of calls: their number, tokens, expected and maximum dollars (None if the price is unknown)."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    max_usd: float | None = 0.0

    def plus(self, other: "Estimate") -> "Estimate":
        """The sum of two estimates; its dollars are None if either price is unknown."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        max_usd = None if self.max_usd is None or other.max_usd is None else self.max_usd + other.max_usd
        return Estimate(self.calls + other.calls, self.tokens + other.tokens, usd, max_usd)

    def summary(self, what: str) -> str:
        """The estimate in one line, headed by `what`."""
        return f"{what}: {self.calls} calls; {self}"

    def __str__(self) -> str:
        if not self.calls:
            return "nothing to ask"
        price = (
            "price unknown"
            if self.usd is None
            else f"${self.usd:.4f} expected, ${self.max_usd:.4f} at most without retries"
        )
        return f"about {self.tokens} tokens, {price}"


def missing(answers: AnswerCache, prompter: Prompter, tasks: Sequence[Task]) -> list[Task]:
    """The distinct tasks without a stored answer, in an order that depends only on their content."""
    return all_missing(answers, [(prompter, tasks)])[0]


def all_missing(answers: AnswerCache, wanted: Sequence[tuple[Prompter, Sequence[Task]]]) -> list[list[Task]]:
    """For each (prompter, tasks), the tasks without a stored answer; a task shared by several is listed once."""
    claimed: set[str] = set()
    left = []
    for prompter, tasks in wanted:
        distinct = sorted(set(tasks))
        addresses = prompter.addresses(distinct)
        known = answers.labels(addresses, prompter.greatest_grade).keys() | claimed
        left.append([task for task, address in zip(distinct, addresses, strict=True) if address not in known])
        claimed.update(addresses)
    return left


def stored(answers: AnswerCache, prompter: Prompter, tasks: Sequence[Task]) -> dict[Task, Outcome]:
    """The outcome of each distinct task: its answer, its latest failure, or failure `offline` if it was never sent."""
    distinct = sorted(set(tasks))
    addresses = dict(zip(distinct, prompter.addresses(distinct), strict=True))
    labels = answers.labels(list(addresses.values()), prompter.greatest_grade)
    failures = answers.failures([address for address in addresses.values() if address not in labels])
    never = Failure("offline", f"never sent to {prompter.model} at {prompter.endpoint}")
    return {task: labels.get(at) or failures.get(at) or never for task, at in addresses.items()}


def estimate(
    answers: AnswerCache, prompter: Prompter, tasks: Sequence[Task], price: tuple[float, float] | None = None
) -> Estimate:
    """The estimated cost of all these tasks, stored or not; the cache only supplies the model's bytes per token."""
    prompts = [prompter.prompt(batch) for batch in prompter.batches(tasks)]
    known = find_price(prompter.model, prompter.endpoint, price) if prompts else None
    ratio = answers.bytes_per_token(prompter.endpoint, prompter.model) or _TYPICAL_BYTES
    total = Estimate()
    for prompt in prompts:
        size = prompt_bytes(prompt)
        tokens = round(size / ratio)
        usd = known.usd(Usage(tokens, prompt.output)) if known else None
        max_usd = known.max_usd(size, output_limit(prompter, prompt)) if known else None
        total = total.plus(Estimate(1, tokens + prompt.output, usd, max_usd))
    return total


class BatchRunner:
    """Sends tasks to models through one Caller and stores each answer in the cache as soon as it arrives."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._leases = caller.leases
        self._elsewhere: list[tuple[Prompter, Task]] = []
        self._announced = False
        self._answers = caller.answers
        self._fatal: Exception | None = None

    def ask(self, wanted: Sequence[tuple[Prompter, Sequence[Task]]], title: str = "ask") -> None:
        """Answer all tasks that have no stored answer, showing a progress bar with this title.

        Raises JudgeError if a server cannot be used at all, after the answers of calls in flight have been stored. On
        an interrupt (Ctrl-C) nothing more is sent: calls in flight are finished, the others recorded as cancelled.
        """
        work: list[Work] = []
        unanswered = all_missing(self._answers, wanted)
        for (prompter, _), left in zip(wanted, unanswered, strict=True):
            if left:
                self._caller.account.require_price(prompter)
            work += [(prompter, batch) for batch in prompter.batches(left)]
        if work:
            with progress(title, sum(map(len, unanswered)), unit="questions") as advance:
                blocking(self._all(work, advance))
        if self._fatal:
            raise self._fatal

    async def _all(self, work: Sequence[Work], advance: Callable[[int], None]) -> None:
        # Calls that share a long document wait for the first of them, which writes it to the server's prompt cache.
        ready: deque[Work] = deque()
        followers: dict[tuple[Prompter, str], list[Work]] = {}
        for prompter, batch in work:
            document = prompter.shared(batch)
            if document and (prompter, document) in followers:
                followers[prompter, document].append((prompter, batch))
            else:
                ready.append((prompter, batch))
                if document:
                    followers[prompter, document] = []

        async def one(prompter: Prompter, batch: tuple[Task, ...]) -> list[Work]:
            self._elsewhere += await self._guarded(prompter, batch, advance)
            return followers.pop((prompter, prompter.shared(batch)), [])

        under_way: set[asyncio.Task[list[Work]]] = set()
        try:
            with _interruptible(self._caller):
                while ready or under_way:
                    while ready and len(under_way) < _AT_ONCE:
                        under_way.add(asyncio.create_task(one(*ready.popleft())))
                    done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        ready.extend(task.result())
                    if self._fatal:
                        ready.clear()
                    if not ready and not under_way and self._elsewhere and not self._fatal:
                        ready.extend(await self._wait_for_others())
        finally:
            await self._caller.close()

    async def _guarded(
        self, prompter: Prompter, batch: tuple[Task, ...], advance: Callable[[int], None]
    ) -> list[tuple[Prompter, Task]]:
        """Answer the tasks that no other launch is working on; returns those that another launch is working on."""
        try:
            if self._caller.account.offline:
                await self._settle(prompter, batch, repaired=False)
                advance(len(batch))
                return []
            addresses = dict(zip(prompter.addresses(batch), batch, strict=True))
            mine = self._leases.take(list(addresses))
            try:
                # Another launch may have stored answers since this one looked.
                known = self._answers.labels(list(mine), prompter.greatest_grade).keys()
                left = tuple(task for address, task in addresses.items() if address in mine and address not in known)
                if left:
                    await self._settle(prompter, left, repaired=False)
                advance(len(mine))
            finally:
                self._leases.release(list(mine))
            return [(prompter, task) for address, task in addresses.items() if address not in mine]
        except Exception as error:
            # Calls in flight are finished, since they are paid for; waiting calls are not sent.
            self._fatal = self._fatal or error
            self._caller.stop()
            return []

    async def _wait_for_others(self) -> list[Work]:
        """Wait until another launch has finished, abandoned or lost some tasks; returns the work to try then."""
        waiting, self._elsewhere = self._elsewhere, []
        if not self._announced:
            self._announced = True
            self._caller.notify(f"waiting for another launch, which is working on {len(waiting)} of these tasks")
        by_prompter: dict[Prompter, list[Task]] = {}
        for prompter, task in waiting:
            by_prompter.setdefault(prompter, []).append(task)
        pause = 0.05
        while not self._caller.stopped:
            for prompter, tasks in by_prompter.items():
                addresses = prompter.addresses(tasks)
                free = self._leases.take(addresses)
                self._leases.release(list(free))
                if free:
                    # Tasks that were answered in the meantime are found in the cache later.
                    return [
                        (prompter, batch)
                        for prompter, tasks in by_prompter.items()
                        for batch in prompter.batches(tasks)
                    ]
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        for prompter, tasks in by_prompter.items():
            self._note(prompter, dict.fromkeys(tasks, Failure("cancelled", "stopped before this was sent")))
        return []

    async def _settle(
        self,
        prompter: Prompter,
        batch: tuple[Task, ...],
        *,
        repaired: bool,
        before: Mapping[Task, Failure] = MappingProxyType({}),
    ) -> None:
        """Send calls until every task is answered or has failed in a call of its own.

        Tasks without a valid answer are sent once more, then in halves, down to single tasks. `before` has the failures
        of tasks that are sent again: they stand if nothing more is sent.
        """
        prompt = prompter.prompt(batch)
        answer = await self._caller.ask(prompter, prompt, again=bool(before))
        if isinstance(answer.read, Failure):
            bad: dict[Task, Failure] = dict.fromkeys(batch, answer.read)
            if answer.read.kind == "circuit_open":
                bad |= before
            if answer.read.kind not in _WORTH_SPLITTING:
                self._note(prompter, bad)
                return
            # The same batch would fail again: repeating it helps only if the answer does not match the schema.
            repaired = True
        else:
            bad = self._keep(prompter, prompt, answer.read, answer.call)
        if not bad:
            return
        left = tuple(task for task in batch if task in bad)
        if not repaired or len(left) < len(batch):
            await self._settle(prompter, left, repaired=True, before=bad)
        elif len(left) > 1:
            half = (len(left) + 1) // 2
            await self._settle(prompter, left[:half], repaired=True, before={task: bad[task] for task in left[:half]})
            await self._settle(prompter, left[half:], repaired=True, before={task: bad[task] for task in left[half:]})
        else:
            self._note(prompter, bad)

    def _keep(self, prompter: Prompter, prompt: Prompt, reading: Reading, call: Call | None) -> dict[Task, Failure]:
        """Store the valid answers; returns the failures of the other tasks."""
        kept: dict[Task, Outcome] = {}
        bad: dict[Task, Failure] = {}
        for slot, task in prompt.slots.items():
            outcome = reading.bad.get(slot) or prompter.read(task, reading.entries[slot], prompt)
            if isinstance(outcome, Failure):
                bad[task] = outcome
            else:
                kept[task] = outcome
        if call:
            addresses = prompter.addresses(list(kept))
            self._answers.keep(call, dict(zip(addresses, kept.values(), strict=True)))
        return bad

    def _note(self, prompter: Prompter, failed: Mapping[Task, Failure]) -> None:
        addresses = prompter.addresses(list(failed))
        self._answers.note(dict(zip(addresses, failed.values(), strict=True)))


@contextlib.contextmanager
def _interruptible(caller: Caller) -> Iterator[None]:
    """Inside the block, the first Ctrl-C stops the sending of calls, not the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def stop() -> None:
        caller.stop()
        loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C stops the process

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
