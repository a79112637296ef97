"""Many tasks put to models at once: what is stored is read, the rest is asked in batches, every outcome is kept."""

import asyncio
import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.core.progress import progress
from harness.llm.answer_cache import Archive, Call
from harness.llm.answer_schema import Reading
from harness.llm.answers import Failure, Outcome
from harness.llm.blocking import blocking
from harness.llm.caller import Caller
from harness.llm.prices import Usage, find_price
from harness.llm.prompter import Asking, Prompt, Task
from harness.llm.request import output_limit, prompt_bytes

_TYPICAL_BYTES = 4.0
"""Bytes of English to a token, until a model's own count is known."""

_WORTH_SPLITTING = {"truncated", "context_too_long", "refusal", "content_filter"}
"""Failures of a whole answer that a smaller batch may escape."""

_AT_ONCE = 64
"""Batches in hand at a time; how many of their requests fly is the gate's to say."""

Work = tuple[Asking, tuple[Task, ...]]


class Estimate(NamedTuple):
    """What asking would take: calls, tokens, and dollars expected and at most; None where the price is not known."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    most: float | None = 0.0

    def plus(self, other: "Estimate") -> "Estimate":
        """Both together."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        most = None if self.most is None or other.most is None else self.most + other.most
        return Estimate(self.calls + other.calls, self.tokens + other.tokens, usd, most)

    def told(self, what: str) -> str:
        """One line on what asking takes."""
        return f"{what}: {self.calls} calls; {self}"

    def __str__(self) -> str:
        if not self.calls:
            return "nothing to ask"
        price = (
            "price unknown"
            if self.usd is None
            else f"${self.usd:.4f} expected, ${self.most:.4f} at most without retries"
        )
        return f"about {self.tokens} tokens, {price}"


def missing(archive: Archive, asking: Asking, tasks: Sequence[Task]) -> list[Task]:
    """The distinct tasks that have no stored answer, in an order that depends on their content alone."""
    return all_missing(archive, [(asking, tasks)])[0]


def all_missing(archive: Archive, wanted: Sequence[tuple[Asking, Sequence[Task]]]) -> list[list[Task]]:
    """For each of several askings the tasks that have no stored answer; what two of them share is the first one's."""
    claimed: set[str] = set()
    left = []
    for asking, tasks in wanted:
        distinct = sorted(set(tasks))
        addresses = asking.addresses(distinct)
        known = archive.labels(addresses, asking.greatest_grade).keys() | claimed
        left.append([task for task, address in zip(distinct, addresses, strict=True) if address not in known])
        claimed.update(addresses)
    return left


def stored(archive: Archive, asking: Asking, tasks: Sequence[Task]) -> dict[Task, Outcome]:
    """What is known of each distinct task: its answer, what its latest attempt came to, or that it was never asked."""
    distinct = sorted(set(tasks))
    addresses = dict(zip(distinct, asking.addresses(distinct), strict=True))
    labels = archive.labels(list(addresses.values()), asking.greatest_grade)
    failures = archive.failures([address for address in addresses.values() if address not in labels])
    never = Failure("offline", f"never asked of {asking.model} at {asking.endpoint}")
    return {task: labels.get(at) or failures.get(at) or never for task, at in addresses.items()}


def estimate(
    archive: Archive, asking: Asking, tasks: Sequence[Task], price: tuple[float, float] | None = None
) -> Estimate:
    """What asking about these tasks would take; nothing is looked up in the cache but the model's bytes per token."""
    prompts = [asking.prompt(batch) for batch in asking.batches(tasks)]
    known = find_price(asking.model, asking.endpoint, price) if prompts else None
    ratio = archive.bytes_per_token(asking.endpoint, asking.model) or _TYPICAL_BYTES
    total = Estimate()
    for prompt in prompts:
        size = prompt_bytes(prompt)
        tokens = round(size / ratio)
        usd = known.usd(Usage(tokens, prompt.output)) if known else None
        most = known.most(size, output_limit(asking, prompt)) if known else None
        total = total.plus(Estimate(1, tokens + prompt.output, usd, most))
    return total


class Panel:
    """Puts tasks to models through one Caller. The answers end up in the archive, each as soon as it is there."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._leases = caller.leases
        self._elsewhere: list[tuple[Asking, Task]] = []
        self._told = False
        self._archive = caller.archive
        self._fatal: Exception | None = None

    def ask(self, wanted: Sequence[tuple[Asking, Sequence[Task]]], title: str = "ask") -> None:
        """Ask whatever is not stored, with a bar of that title on the way.

        Raises JudgeError where a server cannot be asked at all, after what was under way has been kept. An interrupt
        (Ctrl-C) stops the sending; what is under way is finished and the rest noted as cancelled.
        """
        work: list[Work] = []
        lefts = all_missing(self._archive, wanted)
        for (asking, _), left in zip(wanted, lefts, strict=True):
            if left:
                self._caller.require_price(asking)
            work += [(asking, batch) for batch in asking.batches(left)]
        if work:
            with progress(title, sum(map(len, lefts))) as advance:
                blocking(self._all(work, advance))
        if self._fatal:
            raise self._fatal

    async def _all(self, work: Sequence[Work], advance: Callable[[int], None]) -> None:
        # Calls that share a long document wait for the first of them, which puts it into the server's cache.
        ready: deque[Work] = deque()
        followers: dict[tuple[Asking, str], list[Work]] = {}
        for asking, batch in work:
            document = asking.shared(batch)
            if document and (asking, document) in followers:
                followers[asking, document].append((asking, batch))
            else:
                ready.append((asking, batch))
                if document:
                    followers[asking, document] = []

        async def one(asking: Asking, batch: tuple[Task, ...]) -> list[Work]:
            self._elsewhere += await self._guarded(asking, batch, advance)
            return followers.pop((asking, asking.shared(batch)), [])

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
                        ready.extend(await self._of_others())
        finally:
            await self._caller.close()

    async def _guarded(
        self, asking: Asking, batch: tuple[Task, ...], advance: Callable[[int], None]
    ) -> list[tuple[Asking, Task]]:
        """Have what nobody else is asking answered; gives what another launch is asking just now."""
        try:
            if self._caller.offline:
                await self._settle(asking, batch, repaired=False)
                advance(len(batch))
                return []
            addresses = dict(zip(asking.addresses(batch), batch, strict=True))
            mine = self._leases.take(list(addresses))
            try:
                # Another launch may have had it answered since this one looked.
                there = self._archive.labels(list(mine), asking.greatest_grade).keys()
                left = tuple(task for address, task in addresses.items() if address in mine and address not in there)
                if left:
                    await self._settle(asking, left, repaired=False)
                advance(len(mine))
            finally:
                self._leases.release(list(mine))
            return [(asking, task) for address, task in addresses.items() if address not in mine]
        except Exception as error:
            # What is under way is finished first, since it is paid for; what waits for its turn is not sent.
            self._fatal = self._fatal or error
            self._caller.stop()
            return []

    async def _of_others(self) -> list[Work]:
        """Wait until another launch has some answer, or has given up or died; gives what to try then."""
        waiting, self._elsewhere = self._elsewhere, []
        if not self._told:
            self._told = True
            self._caller.tell(f"waiting for another launch, which is asking {len(waiting)} of these questions")
        by_asking: dict[Asking, list[Task]] = {}
        for asking, task in waiting:
            by_asking.setdefault(asking, []).append(task)
        pause = 0.05
        while not self._caller.stopped:
            for asking, tasks in by_asking.items():
                addresses = asking.addresses(tasks)
                free = self._leases.take(addresses)
                self._leases.release(list(free))
                if free:
                    # What has been answered meanwhile is found when its turn comes.
                    return [(asking, batch) for asking, tasks in by_asking.items() for batch in asking.batches(tasks)]
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        for asking, tasks in by_asking.items():
            self._note(asking, dict.fromkeys(tasks, Failure("cancelled", "stopped before this was asked")))
        return []

    async def _settle(self, asking: Asking, batch: tuple[Task, ...], *, repaired: bool, again: bool = False) -> None:
        """Ask until every task has its answer, or has failed alone.

        What is bad is asked for once more, then in halves, down to single tasks.
        """
        prompt = asking.prompt(batch)
        answer = await self._caller.ask(asking, prompt, again=again)
        if isinstance(answer.read, Failure):
            bad: dict[Task, Failure] = dict.fromkeys(batch, answer.read)
            if answer.read.kind not in _WORTH_SPLITTING:
                self._note(asking, bad)
                return
            # The same again would be refused again; only an answer out of form is worth a repair.
            repaired = True
        else:
            bad = self._keep(asking, prompt, answer.read, answer.call)
        if not bad:
            return
        left = tuple(task for task in batch if task in bad)
        if not repaired or len(left) < len(batch):
            await self._settle(asking, left, repaired=True, again=True)
        elif len(left) > 1:
            half = (len(left) + 1) // 2
            await self._settle(asking, left[:half], repaired=True, again=True)
            await self._settle(asking, left[half:], repaired=True, again=True)
        else:
            self._note(asking, bad)

    def _keep(self, asking: Asking, prompt: Prompt, reading: Reading, call: Call | None) -> dict[Task, Failure]:
        """Store the answers in order, and give back what is wrong with the others."""
        kept: dict[Task, Outcome] = {}
        bad: dict[Task, Failure] = {}
        for slot, task in prompt.slots.items():
            outcome = reading.bad.get(slot) or asking.read(task, reading.entries[slot], prompt)
            if isinstance(outcome, Failure):
                bad[task] = outcome
            else:
                kept[task] = outcome
        if call:
            addresses = asking.addresses(list(kept))
            self._archive.keep(call, dict(zip(addresses, kept.values(), strict=True)))
        return bad

    def _note(self, asking: Asking, failed: Mapping[Task, Failure]) -> None:
        addresses = asking.addresses(list(failed))
        self._archive.note(dict(zip(addresses, failed.values(), strict=True)))


@contextlib.contextmanager
def _interruptible(caller: Caller) -> Iterator[None]:
    """While the block runs, the first Ctrl-C stops the sending instead of the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def stop() -> None:
        caller.stop()
        loop.remove_signal_handler(signal.SIGINT)  # the second one is meant

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
