"""Calls to models: probed once a server, paced, retried, paid for from a budget, and put on record."""

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from harness.core.errors import JudgeError
from harness.llm.answer_cache import AnswerCache, Call
from harness.llm.answer_schema import Reading
from harness.llm.answers import UNASKED, Failure
from harness.llm.leases import Leases
from harness.llm.prices import Budget, Price, Spend, find_price
from harness.llm.probe import PROBE
from harness.llm.prompter import Prompt, Prompter
from harness.llm.rate_limiter import RateLimiter
from harness.llm.reply import Answer, read_reply
from harness.llm.request import FRAME, MODES, Capabilities, output_limit, request_body, sampling
from harness.llm.retry_policy import RetryPolicy
from harness.llm.server_state import ServerState, fault_of
from harness.llm.transport import LONGEST_WAIT, Connection, Refused, Reply
from harness.storage.digest import digest

_SCHEMA_FAILURES = {"invalid_json", "schema", "missing_label", "extra_label", "bad_request", "truncated"}
"""Failures that another way of asking may cure."""


_LONGER_ANSWERS = 2

_SHORTER_ANSWER = 0.25
"""Of the usual room for an answer, what is asked for where a server counts it against its tokens per minute."""

_WORTH_A_MESSAGE = 5.0
"""Seconds of waiting that a user should know of."""

_PROBES = 3
"""Probes of a server in trouble before all calls to it fail without being sent."""


class Caller:
    """All calls of a launch. Raises JudgeError where no further call to a server can succeed."""

    def __init__(
        self,
        answers: AnswerCache,
        *,
        budget: float | None = None,
        price: tuple[float, float] | None = None,
        offline: bool = False,
        retry_policy: RetryPolicy | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.answers = answers
        self.spend = Spend()
        self.stopped = False
        """Set to send nothing more; what is under way is finished."""
        self._budget, self._given, self._offline = Budget(budget), price, offline
        self._retry_policy = retry_policy or RetryPolicy()
        self.notify = notify
        self.leases = Leases(answers.path.with_name("leases.sqlite"))
        self._lines: dict[tuple[str, str], ServerState] = {}

    @property
    def offline(self) -> bool:
        """Whether nothing is sent."""
        return self._offline

    @property
    def price_given(self) -> tuple[float, float] | None:
        """Dollars per million tokens of prompts and of answers, as the user gives them."""
        return self._given

    @property
    def budget(self) -> float | None:
        """The dollars set aside; None where there is no limit."""
        return self._budget.cap

    def price(self, prompter: Prompter) -> Price | None:
        """The price of a model, or None where nobody knows it."""
        return find_price(prompter.model, prompter.endpoint, self._given)

    def require_price(self, prompter: Prompter) -> None:
        """Refuse to spend from a budget what has no price."""
        if self._budget.cap is not None and not self._offline and self.price(prompter) is None:
            raise JudgeError(
                f"--budget: the price of {prompter.model} at {prompter.endpoint} is not known; "
                "give it with --price IN,OUT (dollars per million tokens; 0,0 where it costs nothing)"
            )

    def charge(self, requests: int, usd: float | None, what: str, setting: str) -> None:
        """Account for requests about to be sent to a server that charges for each; `usd` is None where nobody knows.

        `setting` is where a price may be given. Raises JudgeError where they may not be sent.
        """
        if self._offline and requests:
            raise JudgeError(f"{what}: {requests} requests are not in the cache, and --offline sends nothing")
        if requests and self._budget.cap is not None and usd is None:
            raise JudgeError(f"--budget: the price of {what} is not known; give it as {setting}")
        if usd is not None and not self._budget.charge(usd):
            raise JudgeError(f"--budget {self._budget.cap:g} does not leave the ${usd:.4f} that {what} takes")
        self.spend.requests += requests
        self.spend.calls += requests
        if usd is None:
            self.spend.unpriced += requests
        else:
            self.spend.usd += usd

    async def ask(self, prompter: Prompter, prompt: Prompt, *, again: bool = False) -> Answer:
        """Put one prompt to the model; whatever happens short of a fatal refusal becomes an Answer.

        `again` marks a call about what an earlier one left open. After ten others in a row that brought nothing, no
        more is sent to that server and model.
        """
        stopped = self._unasked()
        if stopped:
            return Answer(stopped, None)
        line = self._line(prompter)
        trouble = await self._probe(prompter, line)
        if trouble:
            return Answer(trouble, None)
        answer = await self._ask(prompter, prompt, line, snippets=0 if again else _LONGER_ANSWERS)
        line.note(answer.read, again=again)
        return answer

    def stop(self) -> None:
        """Send nothing more; what is under way is finished."""
        self.stopped = True
        for line in self._lines.values():
            line.limiter.abandon()

    async def close(self) -> None:
        """Close all connections."""
        for line in self._lines.values():
            await line.connection.close()
        self._lines.clear()
        self.leases.close()
        self._budget.new_loop()

    def _unasked(self) -> Failure | None:
        if self._offline:
            return Failure("offline", "not in the cache, and --offline sends nothing")
        return Failure("cancelled", "stopped before this was asked") if self.stopped else None

    def _line(self, prompter: Prompter) -> ServerState:
        place = (prompter.endpoint, prompter.model)
        if place not in self._lines:
            self.require_price(prompter)
            connection = Connection(prompter.server, prompter.model)
            self._lines[place] = ServerState(connection, RateLimiter(prompter.concurrency), self.price(prompter))
        return self._lines[place]

    # -- one call: requests until one is answered in full

    async def _ask(
        self, prompter: Prompter, prompt: Prompt, line: ServerState, snippets: int = _LONGER_ANSWERS
    ) -> Answer:
        """Requests until one is answered in full;

        an answer that is cut is asked for at more length, `snippets` times.
        """
        failed, turns, stretched, attempts = 0, 0, 0, 0
        stretch: float = line.stretch
        shrunk = False
        while True:
            first = attempts + stretched == 0 and prompt is not PROBE
            answer, refused = await self._request(prompter, prompt, line, stretch, first=first)
            if answer is not None:
                cut = isinstance(answer.read, Failure) and answer.read.kind == "truncated"
                if cut and stretched < snippets:
                    # Models that think before they answer need more room than the answer.
                    stretched, stretch = stretched + 1, stretch * 4
                    continue
                if not isinstance(answer.read, Failure):
                    line.stretch = max(line.stretch, stretch)  # what has been enough is where the next call begins
                if isinstance(answer.read, Failure):
                    text = Failure(answer.read.kind, answer.read.detail, attempts + 1)
                    return Answer(text, answer.call)
                return answer
            assert refused is not None
            attempts += 1
            if refused.kind in UNASKED:
                return Answer(Failure(refused.kind, refused.detail, attempts - 1), None)
            if refused.fatal:
                raise JudgeError(f"model {prompter.model} at {prompter.endpoint}: {refused.kind}: {refused.detail}")
            if refused.kind == "bad_request" and self._adapted(prompter, line, refused.parameter):
                continue
            if refused.shrinks and not shrunk:
                shrunk, stretch = True, _SHORTER_ANSWER
                continue
            turns += refused.kind == "rate_limit"
            failed += refused.kind != "rate_limit"
            given_up = self._retry_policy.ends(refused, failed, turns)
            stopped = self._unasked()
            if given_up or not refused.again or stopped or line.give_up(refused, prompter.give_up_after):
                last = line.given_up or refused
                return Answer(Failure(last.kind, last.detail, attempts), None)
            self._say_that_it_waits(prompter, line, refused)
            if refused.kind != "rate_limit":
                await asyncio.sleep(self._retry_policy.delay(failed) * (0.5 + random.random() / 2))

    def _say_that_it_waits(self, prompter: Prompter, line: ServerState, refused: Refused) -> None:
        """A line on a server that keeps all waiting, at most every half minute."""
        now, wait = time.monotonic(), line.limiter.closed_for()
        if wait >= _WORTH_A_MESSAGE and now >= line.announced + 30:
            line.announced = now
            self.notify(
                f"{prompter.model} at {prompter.endpoint}: {refused.detail}; waiting {wait:.0f} s, "
                f"{line.silent():.0f} s since its last answer, "
                f"given up after {prompter.give_up_after:g} (give_up_after)"
            )

    async def _request(
        self, prompter: Prompter, prompt: Prompt, line: ServerState, stretch: float, *, first: bool
    ) -> tuple[Answer | None, Refused | None]:
        """One request, from its turn at the gate to its place in the archive."""
        output = output_limit(prompter, prompt, stretch)
        body = request_body(prompter, prompt, line.capabilities, output)
        sent = len(json.dumps(body["messages"], ensure_ascii=False).encode("utf-8", "replace"))
        bound = sent + len(json.dumps(body.get("response_format", {}))) + FRAME
        max_usd = line.price.max_usd(bound, output) if line.price else 0.0
        async with line.limiter.turn():
            stopped = self._unasked() or line.circuit_open()
            if stopped:
                return None, Refused(stopped.kind, stopped.detail)
            if not await self._budget.reserve(max_usd):
                message = f"${max_usd:.4f} at most for this call no longer fits into ${self._budget.cap:g}"
                return None, Refused("budget", message)
            begun = time.time()
            self.spend.requests += 1
            self.spend.calls += first
            reply: Reply | None = None
            refused: Refused | None = None
            try:
                reply = await line.connection.send(body, prompter.timeout)
                line.limiter.passed()
                line.answered = time.monotonic()
            except Refused as error:
                refused = error
                if error.kind == "rate_limit" or (error.kind == "server" and error.wait is not None):
                    line.limiter.refused(None if (error.wait or 0) > LONGEST_WAIT else error.wait)
            finally:
                usage = reply.usage if reply else refused.usage if refused else None
                # Refused with a status is not charged; cut off on the way, it may have been.
                charged = reply is not None or refused is None or refused.answered or refused.kind == "timeout"
                usd = (line.price.usd(usage) if line.price and usage else None) if charged else 0.0
                await self._budget.settle(max_usd, usd)
        if charged:
            self.spend.add(usage, usd)
        read: Reading | Failure | None = None
        if reply:
            read = read_reply(reply, prompt)
        status = refused.kind if refused else read.kind if isinstance(read, Failure) else "ok"
        call = Call(
            uuid.uuid4().hex,
            prompter.endpoint,
            prompter.model,
            reply.served if reply else "",
            status,
            begun,
            (time.time() - begun) * 1000,
            sent,
            usage.prompt if usage else None,
            usage.output if usage else None,
            usage.cached if usage else None,
            usd,
            reply.body if reply else refused.body if refused else b"",
        )
        if read is None or isinstance(read, Failure):
            self.answers.keep(call, {})
        return (Answer(read, call), None) if read is not None else (None, refused)

    # -- what a server understands

    def _adapted(self, prompter: Prompter, line: ServerState, parameter: str | None) -> bool:
        """Whether the server can be asked another way than the one it refused."""
        chosen = sampling(prompter)
        if parameter in chosen:
            message = f"model {prompter.model} at {prompter.endpoint} refuses {parameter}={chosen[parameter]}"
            raise JudgeError(f"{message}; leave it out of the experiment")
        left = line.capabilities.refused(parameter)
        line.capabilities = left or line.capabilities
        return left is not None

    async def _probe(self, prompter: Prompter, line: ServerState) -> Failure | None:
        """Find out, once per server and model, how it wants to be asked, and that it grades the right way round.

        Gives the failure where the server was in trouble; after three of them it is not tried again.
        """
        async with line.probing:
            if line.probed:
                return None
            if len(line.troubles) >= _PROBES or self._unasked():
                return self._unasked() or line.troubles[-1]
            address = digest(["probe", prompter.endpoint, prompter.model])
            while not self._known(prompter, line) and not self.leases.take([address]) and not self._unasked():
                await asyncio.sleep(0.1)  # another launch is at it
            try:
                return None if self._known(prompter, line) else await self._probed(prompter, line)
            finally:
                self.leases.release([address])

    def _known(self, prompter: Prompter, line: ServerState) -> bool:
        """Whether it is on record how the server wants to be asked; the line then heeds it."""
        known = self.answers.capabilities(prompter.endpoint, prompter.model)
        if known:
            line.capabilities, line.probed = Capabilities.of(known), True
        return line.probed

    async def _probed(self, prompter: Prompter, line: ServerState) -> Failure | None:
        """Ask the probe; what it found out is kept."""
        before, found = line.capabilities, await self._asked_somehow(prompter, line)
        if isinstance(found, Failure):
            # What the server can do is not known yet.
            line.capabilities = before
            line.troubles.append(found)
            return found
        grades = {slot: entry["grade"] for slot, entry in found.entries.items()}
        if grades["c01"] <= grades["c02"]:
            raise JudgeError(
                f"model {prompter.model} at {prompter.endpoint} graded a plain answer {grades['c01']} and a text "
                f"beside the question {grades['c02']}: it cannot judge, or grades the wrong way round"
            )
        self.answers.keep_capabilities(prompter.endpoint, prompter.model, line.capabilities.plain())
        line.probed = True
        return None

    async def _asked_somehow(self, prompter: Prompter, line: ServerState) -> Reading | Failure:
        """The answer to the probe in the strictest mode that brings one; the failure of a server in trouble."""
        fault = Failure("schema")
        for mode in MODES:
            if MODES.index(line.capabilities.mode) > MODES.index(mode):
                continue  # refused already
            line.capabilities = replace(line.capabilities, mode=mode)
            read, call = await self._ask(prompter, PROBE, line)
            if isinstance(read, Reading) and not read.bad:
                if call:
                    self.answers.keep(call, {})
                return read
            fault = fault_of(read)
            if fault.kind not in _SCHEMA_FAILURES:
                return fault
        raise JudgeError(
            f"model {prompter.model} at {prompter.endpoint} does not answer in the form asked for: {fault}"
        )
