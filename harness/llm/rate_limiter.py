"""Limits the number and the rate of requests to a server; all calls to it share one limiter."""

import asyncio
import contextlib
import time
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_SLOWEST = 60.0


class RateLimiter:
    """Limits concurrency (at most `limit` requests in flight) and rate, adapting both to refusals.

    A "too many requests" response applies to all calls: the limiter closes for the requested time, the number of
    requests in flight is halved, and from then on requests are spaced at nine tenths of the best rate observed so far.
    After successes, the number in flight grows by one per round (additive increase, multiplicative decrease: Chiu &
    Jain, 1989) and the spacing shrinks, faster the longer there has been no refusal.
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
        """Wait until a request may be sent; the block sends one request."""
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
        """Release all waiting calls at once; used when nothing more will be sent."""
        self._abandoned.set()

    def closed_for(self) -> float:
        """Seconds until requests may be sent again."""
        return max(0.0, self._opens - time.monotonic())

    def passed(self) -> None:
        """Record a served request: raises the limit and reduces the spacing."""
        self._served.append(time.monotonic())
        self._refusals = 0
        self._limit = min(float(self._most), self._limit + 1 / max(1.0, self._limit))
        if self._spacing:
            # The spacing shrinks by 3 % per second without a refusal, by at most 20 %.
            quiet = time.monotonic() - self._last_refusal
            self._spacing *= 1 - min(0.2, 0.03 * quiet) * min(1.0, self._spacing)

    def _best_second(self, now: float) -> int:
        """The maximum number of requests served within one second, over the last ten seconds."""
        times = [served for served in self._served if served > now - 10]
        return max((bisect_right(times, at + 1) - place for place, at in enumerate(times)), default=0)

    def refused(self, wait: float | None) -> None:
        """Record a refusal for overload: no request is sent for `wait` seconds, or for a growing time if it is None."""
        now = time.monotonic()
        self._last_refusal = now
        if now >= self._opens:  # the first refusal of a burst; the other requests were already in flight
            self._limit = max(1.0, self._limit / 2)
            self._refusals += 1
            best = self._best_second(now)
            slower = self._spacing * 1.15
            self._spacing = min(2.0, max(slower, 1 / (0.9 * best)) if best else max(slower, 0.1))
        growing = min(_SLOWEST, 0.25 * 2 ** min(self._refusals, 8))
        # After repeated refusals a short wait requested by the server is not trusted.
        pause = growing if wait is None or self._refusals > 1 else wait
        self._opens = max(self._opens, now + max(pause, wait or 0.0))
