"""What all calls to one model of one server share: its pace, its price, its capabilities and its troubles."""

import asyncio
import math
import time
from dataclasses import dataclass, field, replace

from harness.llm.answer_schema import Reading
from harness.llm.answers import UNASKED, Failure
from harness.llm.prices import Price
from harness.llm.rate_limiter import Gate
from harness.llm.request import Abilities
from harness.llm.transport import Connection, Refused

_FRUITLESS = 10
"""Calls in a row that bring nothing before no more are sent: a model that cannot do it must not go on costing money."""


@dataclass
class ServerState:
    """What is shared by all calls to one model of one server."""

    connection: Connection
    gate: Gate
    price: Price | None
    abilities: Abilities = field(default_factory=Abilities)
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    probed: bool = False
    troubles: list[Failure] = field(default_factory=list)
    stretch: float = 1
    fruitless: int = 0
    last: Failure | None = None
    answered: float = field(default_factory=time.monotonic)
    """When the server last answered, or began to be asked."""
    told: float = -math.inf
    given_up: Failure | None = None

    def silent(self) -> float:
        """Seconds since the server answered anything."""
        return time.monotonic() - self.answered

    def give_up(self, refused: Refused, limit: float) -> bool:
        """Whether a server that refuses has had its time, or will have had it when the gate opens again."""
        if self.given_up is None and self.silent() + self.gate.closed_for() > limit:
            told = f"nothing answered for {self.silent():.0f} s (give_up_after: {limit:g}): {refused.detail}"
            self.given_up = Failure(refused.kind, told)
            self.gate.abandon()
        return self.given_up is not None

    def barred(self) -> Failure | None:
        """Why nothing more is sent; None while calls bring something."""
        if self.given_up:
            return replace(self.given_up, detail=f"not sent: {self.given_up.detail}")
        if self.fruitless < _FRUITLESS or self.last is None:
            return None
        told = f"not sent: {self.fruitless} calls in a row brought nothing: {self.last.detail}"
        return Failure(self.last.kind, told)

    def note(self, read: Reading | Failure, *, again: bool) -> None:
        """Count calls in a row that brought nothing at all."""
        if isinstance(read, Reading) and read.entries:
            self.fruitless = 0
        elif not again:
            fault = fault_of(read)
            if fault.kind not in UNASKED and not self.barred():
                self.fruitless, self.last = self.fruitless + 1, fault


def fault_of(read: Reading | Failure) -> Failure:
    """What is wrong with an answer that brought nothing, or not all."""
    return read if isinstance(read, Failure) else next(iter(read.bad.values()))
