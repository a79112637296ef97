"""The state shared by all calls to one model at one server: rate limit, price, capabilities and failures."""

import asyncio
import math
import time
from dataclasses import dataclass, field, replace

from harness.llm.answer_schema import Reading
from harness.llm.answers import UNASKED, Failure
from harness.llm.prices import Price
from harness.llm.rate_limiter import RateLimiter
from harness.llm.request import Capabilities
from harness.llm.transport import Connection, Refused

_CIRCUIT_OPENS_AFTER = 10
"""Consecutive failed calls after which no more are sent, to limit the cost of a model that cannot do the task."""


@dataclass
class ServerState:
    """The shared state of calls to one model at one server, with a circuit breaker for failing servers."""

    connection: Connection
    limiter: RateLimiter
    price: Price | None
    capabilities: Capabilities = field(default_factory=Capabilities)
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    probed: bool = False
    troubles: list[Failure] = field(default_factory=list)
    stretch: float = 1
    consecutive_failures: int = 0
    last: Failure | None = None
    answered: float = field(default_factory=time.monotonic)
    """When the server last answered, or when this state was created (`time.monotonic`, seconds)."""
    announced: float = -math.inf
    given_up: Failure | None = None

    def silent(self) -> float:
        """Seconds since the last answer of the server."""
        return time.monotonic() - self.answered

    def give_up(self, refused: Refused, limit: float) -> bool:
        """Whether to give up: no answer for `limit` seconds, now or by the time the rate limiter opens again."""
        if self.given_up is None and self.silent() + self.limiter.closed_for() > limit:
            message = f"no answer for {self.silent():.0f} s (give_up_after: {limit:g}): {refused.detail}"
            self.given_up = Failure(refused.kind, message)
            self.limiter.abandon()
        return self.given_up is not None

    def circuit_open(self) -> Failure | None:
        """Why nothing more is sent; None while the circuit is closed."""
        if self.given_up:
            return replace(self.given_up, kind="circuit_open", detail=f"not sent: {self.given_up.detail}")
        if self.consecutive_failures < _CIRCUIT_OPENS_AFTER or self.last is None:
            return None
        message = f"not sent: {self.consecutive_failures} calls in a row failed: {self.last.detail}"
        return Failure("circuit_open", message)

    def note(self, read: Reading | Failure, *, again: bool) -> None:
        """Update the count of consecutive failed calls; repeated calls (`again`) do not increase it."""
        if isinstance(read, Reading) and read.entries:
            self.consecutive_failures = 0
        elif not again:
            fault = fault_of(read)
            if fault.kind not in UNASKED and not self.circuit_open():
                self.consecutive_failures, self.last = self.consecutive_failures + 1, fault


def fault_of(read: Reading | Failure) -> Failure:
    """The failure of an answer, or of its first invalid slot."""
    return read if isinstance(read, Failure) else next(iter(read.bad.values()))
