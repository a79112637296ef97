"""How many requests a server gets at a time and how fast: one gate for all calls to it."""

import asyncio
import contextlib
import time
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_SLOWEST = 60.0


class RateLimiter:
    """Requests in flight, held back together.

    A server that says "too fast" says it to all: the gate closes for the time named, the number in flight is halved,
    and from then on requests are spaced at nine tenths of the best rate that had been getting through. Success lets the
    number in flight grow by one a round (additive increase, multiplicative decrease: Chiu & Jain, 1989) and the
    spacing shrink, the faster the longer all is calm.
    """

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._limit = float(limit)
        self._flying = 0
        self._free = asyncio.Condition()
        self._abandoned = asyncio.Event()
        self._opens = 0.0
        self._spacing = 0.0
        self._next = 0.0
        self._served: deque[float] = deque(maxlen=256)
        self._refusals = 0
        self._last_refusal = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn; the block is one request."""
        async with self._free:
            await self._free.wait_for(lambda: self._flying < max(1, int(self._limit)))
            self._flying += 1
        try:
            await self._turn()
            yield
        finally:
            async with self._free:
                self._flying -= 1
                self._free.notify_all()

    async def _turn(self) -> None:
        while not self._abandoned.is_set():
            now = time.monotonic()
            due = max(self._opens, self._next)
            if now >= due:
                self._next = now + self._spacing
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._abandoned.wait(), due - now)

    def abandon(self) -> None:
        """Let all through at once that wait for their turn, to find out that nothing more will be sent."""
        self._abandoned.set()

    def closed_for(self) -> float:
        """Seconds until requests may be sent again."""
        return max(0.0, self._opens - time.monotonic())

    def passed(self) -> None:
        """A request was served."""
        self._served.append(time.monotonic())
        self._refusals = 0
        self._limit = min(float(self._most), self._limit + 1 / max(1.0, self._limit))
        if self._spacing:
            # Faster by 3 % a second for every second without a refusal, at most by a fifth.
            calm = time.monotonic() - self._last_refusal
            self._spacing *= 1 - min(0.2, 0.03 * calm) * min(1.0, self._spacing)

    def _best_second(self, now: float) -> int:
        """The most requests served within one second of late: what the server is known to bear."""
        times = [served for served in self._served if served > now - 10]
        return max((bisect_right(times, at + 1) - place for place, at in enumerate(times)), default=0)

    def refused(self, wait: float | None) -> None:
        """A request was refused as too fast, or by a server out of breath: all wait."""
        now = time.monotonic()
        self._last_refusal = now
        if now >= self._opens:  # the first of a burst of refusals; the others were sent before it was known
            self._limit = max(1.0, self._limit / 2)
            self._refusals += 1
            best = self._best_second(now)
            slower = self._spacing * 1.15
            self._spacing = min(2.0, max(slower, 1 / (0.9 * best)) if best else max(slower, 0.1))
        growing = min(_SLOWEST, 0.25 * 2 ** min(self._refusals, 8))
        # A server that says "at once" and refuses again is not believed a second time.
        pause = growing if wait is None or self._refusals > 1 else wait
        self._opens = max(self._opens, now + max(pause, wait or 0.0))
