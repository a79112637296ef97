"""How many requests a server gets at a time, and how fast."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from judged_questions import VICTIM, case, put
from openai_server import Raw, Server

from harness.llm import (
    Label,
    RetryPolicy,
)
from harness.llm import rate_limiter as limiters
from harness.llm.rate_limiter import RateLimiter
from judges import ContextPrecision


def test_a_storm_of_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that accepts 25 requests per second: at most 1.10 requests per call, and no failures."""
    with Server(rate=25) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        cases = [case(f"Question {at}?", ["Text."]) for at in range(120)]
        outcome = put(cases, tmp_path, ContextPrecision("m"), retry_policy=RetryPolicy())
        assert all(isinstance(one, Label) for one in outcome.judgments.values())
        assert len(server.calls) <= 1.10 * 120
        assert server.refused > 0


def test_a_refusal_stops_all_requests() -> None:
    """After a refusal no request is sent before the requested time, and fewer are sent concurrently."""

    async def scene() -> tuple[float, float]:
        limiter = RateLimiter(8)
        limiter.refused(0.05)
        begin = asyncio.get_running_loop().time()
        async with limiter.turn():
            waited = asyncio.get_running_loop().time() - begin
        return waited, limiter._limit

    waited, limit = asyncio.run(scene())
    assert waited >= 0.05
    assert limit == 4


@pytest.mark.parametrize(
    ("raw", "waits", "requests"),
    [
        (Raw(429), [None, None], 2),
        (Raw(429, headers={"Retry-After": "1.5"}), [1.5, 1.5], 2),
        (Raw(429, headers={"Retry-After": "120"}), [120, 120], 2),
        (Raw(429, headers={"Retry-After": "121"}), [None], 1),
        (Raw(503, headers={"Retry-After": "1.5"}), [1.5], 1),
        (Raw(503), [], 1),
        (Raw(408, headers={"Retry-After": "1.5"}), [], 1),
        (Raw(400), [], 1),
    ],
)
def test_what_closes_the_rate_limiter(
    raw: Raw,
    waits: list[float | None],
    requests: int,
    slept: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Status 429, and a failing server that names a time; a time of over two minutes ends the call."""
    refusals: list[float | None] = []
    monkeypatch.setattr(RateLimiter, "refused", lambda _, wait: refusals.append(wait))
    with Server(lambda _: raw) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, retry_policy=RetryPolicy(attempts=1, turns=2))
        assert len(server.calls) == requests
    assert refusals == waits
    assert slept == []  # the rate limiter delays requests
    assert {one.attempts for one in outcome.judgments.values()} == {requests}  # type: ignore[union-attr]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The rate limiter's clock, which stands still until it is set."""
    made = SimpleNamespace(now=100.0)
    made.monotonic = lambda: made.now
    monkeypatch.setattr(limiters, "time", made)
    return made


def test_the_first_requested_wait_is_respected(clock: SimpleNamespace) -> None:
    """The limiter opens at the requested time; a later refusal does not make it earlier."""
    limiter = RateLimiter(8)
    limiter.refused(0.25)
    assert limiter._opens == 100.25
    limiter.refused(0.0)
    assert limiter._opens == 100.25


def test_a_burst_of_refusals_halves_the_limit_once(clock: SimpleNamespace) -> None:
    """Refusals of requests already in flight only postpone the time at which the limiter opens."""
    limiter = RateLimiter(8)
    limiter.refused(None)
    assert (limiter._limit, limiter._opens, limiter._spacing) == (4.0, 100.5, 0.1)
    clock.now = 100.25
    limiter.refused(None)
    assert (limiter._limit, limiter._opens, limiter._spacing) == (4.0, 100.75, 0.1)
    limiter.refused(3.0)
    limiter.refused(0.0)
    assert limiter._opens == 103.25
    clock.now = 103.25
    limiter.refused(0.5)
    assert limiter._opens == 104.25
    limiter.refused(2.0)
    assert limiter._opens == 105.25
    limiter._opens = 104.25
    assert (limiter._limit, limiter._opens) == (2.0, 104.25)  # the second refusal: at least a second
    assert limiter._spacing == pytest.approx(0.115)


def test_repeated_refusals_close_the_limiter_for_at_most_a_minute(clock: SimpleNamespace) -> None:
    """Twice as long each time; at least one request at a time, at most two seconds apart."""
    limiter = RateLimiter(4)
    waits = []
    for _ in range(30):
        clock.now = max(clock.now, limiter._opens)
        limiter.refused(None)
        waits.append(limiter._opens - clock.now)
    assert waits[:9] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert waits[-1] == 60
    assert (limiter._limit, limiter._spacing) == (1.0, 2.0)
    limiter.passed()
    clock.now = limiter._opens
    limiter.refused(None)
    assert limiter._opens - clock.now == 0.5


def test_requests_are_spaced_at_nine_tenths_of_the_best_rate(clock: SimpleNamespace) -> None:
    """Over the last ten seconds: six within one second give a spacing of 1 / 5.4 s; older ones do not count."""
    limiter = RateLimiter(8)
    for at, served in ((100.0, 9), (111.0, 3), (111.5, 2), (112.0, 1), (112.25, 2), (120.5, 0)):
        clock.now = at
        for _ in range(served):
            limiter.passed()
    assert limiter._best_second(120.5) == 6
    limiter.refused(None)
    assert limiter._spacing == pytest.approx(1 / 5.4)
    assert limiter._best_second(121.0) == 5  # those at 111 s are ten seconds old
    assert limiter._best_second(130.0) == 0


def test_successes_relax_the_limits(clock: SimpleNamespace) -> None:
    """One more in flight per round, up to the limit; the spacing shrinks by 3 % per quiet second, at most 20 %."""
    limiter = RateLimiter(5)
    limiter.refused(None)
    limiter._spacing = 1.0
    clock.now = 102.0
    limiter.passed()
    assert (limiter._limit, limiter._spacing) == (2.5 + 1 / 2.5, pytest.approx(0.94))
    clock.now = 200.0
    limiter._spacing = 0.5
    limiter.passed()
    assert limiter._spacing == pytest.approx(0.5 * (1 - 0.2 * 0.5))
    limiter._spacing = 2.0
    limiter.passed()
    assert limiter._spacing == pytest.approx(1.6)
    for _ in range(20):
        limiter.passed()
    assert limiter._limit == 5.0


def test_requests_are_spaced(clock: SimpleNamespace) -> None:
    """The next one is due one spacing later; a finished one is no longer in flight."""
    limiter = RateLimiter(2)
    limiter._spacing = 0.25

    async def scene() -> int:
        async with limiter.turn():
            return limiter._flying

    assert asyncio.run(scene()) == 1
    assert (limiter._flying, limiter._next) == (0, 100.25)
