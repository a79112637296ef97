"""Prices, usage and the budget by themselves: what a call costs, at most and really."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llm_calls import MANY, PRICE, a_call

from harness.llm import (
    AnswerCache,
    Caller,
    Estimate,
    Spend,
    estimate,
)
from harness.llm.prices import Budget, Price, Usage, find_price
from harness.llm.request import prompt_bytes
from judges import ContextPrecision


def test_prices_of_the_list() -> None:
    """Cached tokens are cheaper; tokens written to the cache raise the maximum cost of a call."""
    price = find_price("gpt-6-luna", "https://api.openai.com/v1")
    assert price is not None
    assert price.usd(Usage(100_000, 0)) == pytest.approx(0.01)
    assert price.usd(Usage(100_000, 0, cached=100_000)) == pytest.approx(0.001)
    assert price.max_usd(100_000, 0) == pytest.approx(0.0125)
    assert find_price("no-such-model", "https://api.openai.com/v1") is None
    assert find_price("gpt-6-luna", "http://localhost:11434/v1") is None


def test_an_unknown_cost_is_never_shown_as_zero() -> None:
    """Zero dollars and an unknown amount are reported differently."""
    spend = Spend()
    spend.add(None, None)
    assert spend.summary == "an unknown amount for 1 requests"
    spend.add(Usage(10, 1), 0.5)
    assert spend.summary == "$0.5000 and an unknown amount for 1 requests"


@pytest.mark.parametrize(
    "expected",
    [None, {}, [], {"prompt_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": 1.5}],
)
def test_implausible_usage(expected: Any) -> None:
    """It is ignored."""
    assert Usage.of(expected) is None


def test_usage_with_details() -> None:
    """Cached and written tokens are included in the prompt tokens."""
    details = {"cached_tokens": 3, "cache_write_tokens": 2}
    record = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": details}
    assert Usage.of(record) == Usage(9, 1, 3, 2)
    assert Usage.of({**record, "prompt_tokens_details": {"cached_tokens": 10}}) is None


def test_a_budget_waits_for_requests_in_flight() -> None:
    """A call that fits only after another turns out cheaper is sent; one that can never fit is not."""

    async def scene() -> list[bool]:
        budget = Budget(1.0)
        first = await budget.reserve(0.8)
        second = asyncio.create_task(budget.reserve(0.5))
        never = await budget.reserve(1.5)
        await budget.settle(0.8, 0.1)
        return [first, await second, never]

    assert asyncio.run(scene()) == [True, True, False]


def test_missing_usage_counts_as_the_maximum_observed() -> None:
    """A server exceeded the bound twofold: a call of at most 0.1 without usage counts as 0.2, and so does the next."""

    async def scene() -> Budget:
        budget = Budget(1.0)
        for spent in (0.2, None):
            assert await budget.reserve(0.1)
            await budget.settle(0.1, spent)
        return budget

    budget = asyncio.run(scene())
    assert not budget.charge(0.31)  # 0.2 + 0.2 + 2 * 0.31 > 1
    assert budget.charge(0.3)


def test_unused_reservations_are_released() -> None:
    """Two halves fit together; a call that costs less than reserved releases the rest."""

    async def scene() -> list[bool]:
        budget = Budget(1.0)
        made = [await budget.reserve(0.5), await budget.reserve(0.5), budget.charge(0.1)]
        await budget.settle(0.5, 0.0)
        await budget.settle(0.5, 0.25)
        await budget.settle(0.0, 0.0)
        return [*made, budget.charge(0.75), budget.charge(0.01)]

    assert asyncio.run(scene()) == [True, True, False, True, False]


def test_a_call_waits_for_reserved_money(tmp_path: Path) -> None:
    """Until the other call turns out cheaper; also in the next event loop."""
    caller = Caller(AnswerCache(tmp_path / "a.sqlite"), budget=1.0)
    budget = caller.account.budget

    async def scene() -> list[bool]:
        assert await budget.reserve(0.8)
        second = asyncio.create_task(budget.reserve(0.5))
        for _ in range(9):
            await asyncio.sleep(0)
        waiting = not second.done()
        await budget.settle(0.8, 0.0)
        made = [waiting, await second]
        await budget.settle(0.5, 0.0)
        await caller.close()
        return made

    assert [asyncio.run(scene()) for _ in range(2)] == [[True, True]] * 2


def test_prices_set_by_the_user() -> None:
    """Dollars per million prompt and answer tokens; caching does not change the price."""
    price = find_price("any", "http://localhost/v1", (2.0, 4.0))
    assert price == Price("any", (2.0, 4.0))
    assert price.usd(Usage(1_000_000, 500_000, 900_000)) == 4.0
    assert price.max_usd(1_000_000, 1_000_000) == 6.0


@pytest.mark.parametrize(
    ("expected", "usage"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0)),
        ({"prompt_tokens": 9_999_999, "completion_tokens": 1}, Usage(9_999_999, 1)),
        ({"prompt_tokens": 10_000_000, "completion_tokens": 1}, None),
        ({"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(1, 1)),
        ({"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": None}}, Usage(1, 1)),
        ({"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}, Usage(2, 1, 2)),
        (
            {
                "prompt_tokens": 2,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2},
            },
            None,
        ),
    ],
)
def test_usage_at_its_limits(expected: Any, usage: Usage | None) -> None:
    """A whole prompt may be cached or written; ten million tokens are implausible."""
    assert Usage.of(expected) == usage


def test_spending_is_added_up() -> None:
    """All kinds of tokens; no figures if no request was sent."""
    spend = Spend()
    assert spend.figures() == {}
    assert spend.summary == "$0.0000"
    for _ in range(2):
        spend.add(Usage(10, 5, 3, 2), 0.25)
        spend.requests += 1
    expected = {"requests": 2, "prompt_tokens": 20, "cached_tokens": 6, "written_tokens": 4, "output_tokens": 10}
    assert spend.figures() == {"calls": 0.0, "usd": 0.5, "unpriced": 0.0, **expected}
    assert spend.summary == "$0.5000"


def test_cost_estimates(tmp_path: Path) -> None:
    """Two calls: one token per four bytes or the measured ratio; expected and maximum lengths of answers."""
    answers, judge = AnswerCache(tmp_path / "a.sqlite"), ContextPrecision("m", base_url="http://127.0.0.1:9/v1")
    tasks = [task for one in MANY[:2] for task in judge.tasks(one)]
    sizes = [prompt_bytes(judge.prompt(batch)) for batch in judge.batches(tasks)]
    assert len(sizes) == 2
    for ratio in (4.0, 2.0):
        tokens = sum(round(size / ratio) for size in sizes)
        found = estimate(answers, judge, tasks, PRICE)
        assert (found.calls, found.tokens) == (2, tokens + 2 * 460)
        assert found.usd == pytest.approx((tokens + 2 * 2 * 460) / 1e6)
        assert found.max_usd == pytest.approx((sum(sizes) + 2 * 2 * 2040) / 1e6)
        answers.keep(a_call(endpoint="http://127.0.0.1:9/v1", bytes_sent=200), {})
    assert estimate(answers, judge, tasks)[2:] == (None, None)
    assert estimate(answers, judge, []) == Estimate()


def test_estimates_as_text() -> None:
    """The sum of a known and an unknown price is unknown."""
    known, unknown = Estimate(1, 10, 0.25, 0.5), Estimate(2, 5, None, None)
    assert known.plus(known) == Estimate(2, 20, 0.5, 1.0)
    assert known.plus(unknown) == unknown.plus(known) == Estimate(3, 15, None, None)
    assert (
        known.summary("judge") == "judge: 1 calls; about 10 tokens, $0.2500 expected, $0.5000 at most without retries"
    )
    assert str(unknown) == "about 5 tokens, price unknown"
    assert str(Estimate()) == "nothing to ask"
