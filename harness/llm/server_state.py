"""What all calls to one model of one server share: its pace, its price, its capabilities and its troubles."""

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
"""Calls in a row that bring nothing before no more are sent: a model that cannot do it must not go on costing money."""


@dataclass
class ServerState:
    """What is shared by all calls to one model of one server."""

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
    """When the server last answered, or began to be asked."""
    announced: float = -math.inf
    given_up: Failure | None = None

    def silent(self) -> float:
        """Seconds since the server answered anything."""
        return time.monotonic() - self.answered

    def give_up(self, refused: Refused, limit: float) -> bool:
        """Whether a server that refuses has had its time, or will have had it when the gate opens again."""
        if self.given_up is None and self.silent() + self.limiter.closed_for() > limit:
            message = f"nothing answered for {self.silent():.0f} s (give_up_after: {limit:g}): {refused.detail}"
            self.given_up = Failure(refused.kind, message)
            self.limiter.abandon()
        return self.given_up is not None

    def circuit_open(self) -> Failure | None:
        """Why nothing more is sent; None while calls bring something."""
        if self.given_up:
            return replace(self.given_up, detail=f"not sent: {self.given_up.detail}")
        if self.consecutive_failures < _CIRCUIT_OPENS_AFTER or self.last is None:
            return None
        message = f"not sent: {self.consecutive_failures} calls in a row brought nothing: {self.last.detail}"
        return Failure(self.last.kind, message)

    def note(self, read: Reading | Failure, *, again: bool) -> None:
        """Count calls in a row that brought nothing at all."""
        if isinstance(read, Reading) and read.entries:
            self.consecutive_failures = 0
        elif not again:
            fault = fault_of(read)
            if fault.kind not in UNASKED and not self.circuit_open():
                self.consecutive_failures, self.last = self.consecutive_failures + 1, fault


def fault_of(read: Reading | Failure) -> Failure:
    """What is wrong with an answer that brought nothing, or not all."""
    return read if isinstance(read, Failure) else next(iter(read.bad.values()))
