"""Calls to models: probing each server once, rate limiting, retries, the budget and the record of every request."""

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from harness.core.errors import JudgeError
from harness.llm.account import Account
from harness.llm.answer_cache import AnswerCache, Call
from harness.llm.answer_schema import Reading
from harness.llm.answers import UNASKED, Failure
from harness.llm.leases import Leases
from harness.llm.prices import Spend
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
"""Failures that another response format may avoid."""

_EXTENSIONS = 2
"""How often a truncated answer is requested again with a higher token limit."""

_SHORTER_ANSWER = 0.25
"""Factor on the token limit of an answer if the server counts it against its tokens per minute."""

_WORTH_A_MESSAGE = 5.0
"""Seconds of waiting from which on the user is notified."""

_PROBES = 3
"""Failed probes of a server before all calls to it fail without being sent."""


class Caller:
    """Sends all calls of a launch. Methods raise JudgeError if no further call to a server can succeed.

    `budget` is in dollars; `price` overrides list prices, in dollars per million prompt and answer tokens. With
    `offline` nothing is sent. `notify` receives messages for the user.
    """

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
        self.account = Account(budget, price, offline=offline)
        self.stopped = False
        """If True, nothing more is sent; calls in flight are finished."""
        self._retry_policy = retry_policy or RetryPolicy()
        self.notify = notify
        self.leases = Leases(answers.path.with_name("leases.sqlite"))
        self._servers: dict[tuple[str, str], ServerState] = {}

    @property
    def spend(self) -> Spend:
        """What has been spent."""
        return self.account.spend

    async def ask(self, prompter: Prompter, prompt: Prompt, *, again: bool = False) -> Answer:
        """Send one prompt to the model. All failures except fatal ones are returned as an Answer.

        `again` marks a repeated call for tasks that an earlier one left open. After ten failed first calls in a row,
        nothing more is sent to that server and model. Raises JudgeError after a fatal failure.
        """
        stopped = self._stop_reason()
        if stopped:
            return Answer(stopped, None)
        server = self._server(prompter)
        failure = await self._probe(prompter, server)
        if failure:
            return Answer(failure, None)
        answer = await self._ask(prompter, prompt, server, extensions=0 if again else _EXTENSIONS)
        server.note(answer.read, again=again)
        return answer

    def stop(self) -> None:
        """Send nothing more; calls in flight are finished."""
        self.stopped = True
        for server in self._servers.values():
            server.limiter.abandon()

    async def close(self) -> None:
        """Close all connections and release all leases; the Caller can be used again in another event loop."""
        for server in self._servers.values():
            await server.connection.close()
        self._servers.clear()
        self.leases.close()
        self.account.budget.new_loop()

    def _stop_reason(self) -> Failure | None:
        if self.account.offline:
            return Failure("offline", "not in the cache, and --offline sends nothing")
        return Failure("cancelled", "stopped before this was sent") if self.stopped else None

    def _server(self, prompter: Prompter) -> ServerState:
        key = (prompter.endpoint, prompter.model)
        if key not in self._servers:
            self.account.require_price(prompter)
            connection = Connection(prompter.server, prompter.model)
            self._servers[key] = ServerState(
                connection, RateLimiter(prompter.concurrency), self.account.price(prompter)
            )
        return self._servers[key]

    async def _ask(
        self, prompter: Prompter, prompt: Prompt, server: ServerState, extensions: int = _EXTENSIONS
    ) -> Answer:
        """Send requests until one is answered in full or the retry policy ends the call.

        A truncated answer is requested again, up to `extensions` times, each time with four times the token limit.
        """
        failed, turns, extended, attempts = 0, 0, 0, 0
        before: Refused | None = None
        stretch: float = server.stretch
        shrunk = False
        while True:
            first = attempts + extended == 0 and prompt is not PROBE
            answer, refused = await self._request(prompter, prompt, server, stretch, first=first)
            if answer is not None:
                truncated = isinstance(answer.read, Failure) and answer.read.kind == "truncated"
                if truncated and extended < extensions:
                    # Models that reason before they answer need more tokens than the answer alone.
                    extended, stretch = extended + 1, stretch * 4
                    continue
                if isinstance(answer.read, Failure):
                    return Answer(Failure(answer.read.kind, answer.read.detail, attempts + 1), answer.call)
                server.stretch = max(server.stretch, stretch)  # later calls start with the limit that sufficed
                return answer
            assert refused is not None
            attempts += 1
            if refused.kind == "circuit_open" and before is not None:
                # It was sent, and refused, before the circuit opened for all calls.
                return Answer(Failure(before.kind, refused.detail, attempts - 1), None)
            if refused.kind in UNASKED:
                return Answer(Failure(refused.kind, refused.detail, attempts - 1), None)
            before = refused
            if refused.fatal:
                raise JudgeError(f"model {prompter.model} at {prompter.endpoint}: {refused.kind}: {refused.detail}")
            if refused.kind == "bad_request" and self._adapted(prompter, server, refused.parameter):
                continue
            if refused.shrinks and not shrunk:
                shrunk, stretch = True, _SHORTER_ANSWER
                continue
            turns += refused.kind == "rate_limit"
            failed += refused.kind != "rate_limit"
            given_up = self._retry_policy.ends(refused, failed, turns)
            stopped = self._stop_reason()
            if given_up or not refused.again or stopped or server.give_up(refused, prompter.give_up_after):
                last = server.given_up or refused
                return Answer(Failure(last.kind, last.detail, attempts), None)
            self._notify_of_wait(prompter, server, refused)
            if refused.kind != "rate_limit":
                await asyncio.sleep(self._retry_policy.delay(failed) * (0.5 + random.random() / 2))

    def _notify_of_wait(self, prompter: Prompter, server: ServerState, refused: Refused) -> None:
        """Notify the user, at most every 30 seconds, that all calls wait for a server."""
        now, wait = time.monotonic(), server.limiter.closed_for()
        if wait >= _WORTH_A_MESSAGE and now >= server.announced + 30:
            server.announced = now
            self.notify(
                f"{prompter.model} at {prompter.endpoint}: {refused.detail}; waiting {wait:.0f} s, "
                f"{server.silent():.0f} s since its last answer, "
                f"giving up after {prompter.give_up_after:g} s (give_up_after)"
            )

    async def _request(
        self, prompter: Prompter, prompt: Prompt, server: ServerState, stretch: float, *, first: bool
    ) -> tuple[Answer | None, Refused | None]:
        """Send one request within rate limit and budget, and record it in the answer cache."""
        output = output_limit(prompter, prompt, stretch)
        body = request_body(prompter, prompt, server.capabilities, output)
        sent = len(json.dumps(body["messages"], ensure_ascii=False).encode("utf-8", "replace"))
        bound = sent + len(json.dumps(body.get("response_format", {}))) + FRAME
        max_usd = server.price.max_usd(bound, output) if server.price else 0.0
        async with server.limiter.turn():
            stopped = self._stop_reason() or server.circuit_open()
            if stopped:
                return None, Refused(stopped.kind, stopped.detail)
            if not await self.account.budget.reserve(max_usd):
                message = f"this call may cost up to ${max_usd:.4f}, more than is left of ${self.account.budget.cap:g}"
                return None, Refused("budget", message)
            begun = time.time()
            self.spend.requests += 1
            self.spend.calls += first
            reply: Reply | None = None
            refused: Refused | None = None
            try:
                reply = await server.connection.send(body, prompter.timeout)
                server.limiter.passed()
                server.answered = time.monotonic()
            except Refused as error:
                refused = error
                if error.kind == "rate_limit" or (error.kind == "server" and error.wait is not None):
                    server.limiter.refused(None if (error.wait or 0) > LONGEST_WAIT else error.wait)
            finally:
                usage = reply.usage if reply else refused.usage if refused else None
                # A request refused with an HTTP status is not charged; one interrupted on the way may have been.
                charged = reply is not None or refused is None or refused.answered or refused.kind == "timeout"
                usd = (server.price.usd(usage) if server.price and usage else None) if charged else 0.0
                await self.account.budget.settle(max_usd, usd)
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

    def _adapted(self, prompter: Prompter, server: ServerState, parameter: str | None) -> bool:
        """Adapt to a server that refused a parameter; False if impossible. Raises JudgeError for a user's setting."""
        chosen = sampling(prompter)
        if parameter in chosen:
            message = f"model {prompter.model} at {prompter.endpoint} does not accept {parameter}={chosen[parameter]}"
            raise JudgeError(f"{message}; remove it from the experiment")
        left = server.capabilities.refused(parameter)
        server.capabilities = left or server.capabilities
        return left is not None

    async def _probe(self, prompter: Prompter, server: ServerState) -> Failure | None:
        """Determine, once per server and model, its capabilities, and check that it grades the right way round.

        Returns the failure if the probe failed; after three failed probes no more are sent.
        """
        async with server.probing:
            if server.probed:
                return None
            if len(server.troubles) >= _PROBES or self._stop_reason():
                return self._stop_reason() or server.troubles[-1]
            address = digest(["probe", prompter.endpoint, prompter.model])
            while not self._known(prompter, server) and not self.leases.take([address]) and not self._stop_reason():
                await asyncio.sleep(0.1)  # another launch is probing this server
            try:
                return None if self._known(prompter, server) else await self._probed(prompter, server)
            finally:
                self.leases.release([address])

    def _known(self, prompter: Prompter, server: ServerState) -> bool:
        """Whether the server has been probed; loads stored capabilities if there are any."""
        known = self.answers.capabilities(prompter.endpoint, prompter.model)
        if known:
            server.capabilities, server.probed = Capabilities.of(known), True
        return server.probed

    async def _probed(self, prompter: Prompter, server: ServerState) -> Failure | None:
        """Send the probe and store the capabilities it finds. Raises JudgeError if the grades are not in order."""
        before, found = server.capabilities, await self._answer_to_probe(prompter, server)
        if isinstance(found, Failure):
            # The capabilities of the server are still unknown.
            server.capabilities = before
            server.troubles.append(found)
            return found
        grades = {slot: entry["grade"] for slot, entry in found.entries.items()}
        if grades["c01"] <= grades["c02"]:
            raise JudgeError(
                f"model {prompter.model} at {prompter.endpoint} graded a correct answer {grades['c01']} and an "
                f"off-topic text {grades['c02']}: it cannot judge, or grades the wrong way round"
            )
        self.answers.keep_capabilities(prompter.endpoint, prompter.model, server.capabilities.plain())
        server.probed = True
        return None

    async def _answer_to_probe(self, prompter: Prompter, server: ServerState) -> Reading | Failure:
        """The answer to the probe in the strictest mode that works (JudgeError if none does), or another failure."""
        fault = Failure("schema")
        for mode in MODES:
            if MODES.index(server.capabilities.mode) > MODES.index(mode):
                continue  # already refused
            server.capabilities = replace(server.capabilities, mode=mode)
            read, call = await self._ask(prompter, PROBE, server)
            if isinstance(read, Reading) and not read.bad:
                if call:
                    self.answers.keep(call, {})
                return read
            fault = fault_of(read)
            if fault.kind not in _SCHEMA_FAILURES:
                return fault
        raise JudgeError(
            f"model {prompter.model} at {prompter.endpoint} does not answer in the requested format: {fault}"
        )
