"""Money: a budget is never exceeded, nothing is paid twice, and what was spent is known."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from judged_questions import BYSTANDER, VICTIM, case, put
from llm_calls import MANY, PRICE, dollars
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.core.errors import JudgeError
from harness.llm import (
    AnswerCache,
    BatchRunner,
    Caller,
    Failure,
    Label,
    RetryPolicy,
    Spend,
    all_missing,
)
from judges import ContextPrecision


@pytest.mark.parametrize("cap", [0.0, 1e-9, 0.001, 0.005, 0.02, 0.03])
def test_a_budget_is_never_exceeded(cap: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the server's own count, with concurrent requests; the rest are failures, and the recorded cost agrees."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put(MANY, tmp_path, budget=cap, price=PRICE)
        assert dollars(server) <= cap
        assert outcome.caller.spend.usd == pytest.approx(dollars(server))
        kinds = {one.kind for one in outcome.judgments.values() if isinstance(one, Failure)}
        assert kinds == {"budget"}
        if cap < 1e-6:
            assert server.asked == []
        if cap >= 0.02:
            assert any(isinstance(one, Label) for one in outcome.judgments.values())
        # With a larger budget the next run continues where this one stopped.
        paid = {asked.user for asked in server.calls}
        server.asked.clear()
        again = put(MANY, tmp_path, budget=1.0, price=PRICE)
        assert all(isinstance(one, Label) for one in again.judgments.values())
        assert not paid & {asked.user for asked in server.calls}


def test_a_budget_must_cover_the_maximum_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget must cover the maximum cost of probe and call, not just the actual cost."""
    judge = ContextPrecision("some-model")
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        spent = put([VICTIM], tmp_path / "a", judge, budget=1.0, price=PRICE).caller.spend.usd
        tight = put([VICTIM], tmp_path / "b", judge, budget=spent, price=PRICE)
    assert spent > 0
    assert tight.kinds(VICTIM) == ["budget"] * 3


def test_text_with_many_tokens_stays_within_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that counts one token per byte, the worst case of tokenizers."""

    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        made["usage"]["prompt_tokens"] = len(str(asked.body["messages"]).encode())
        return made

    cases = [case(f"问题 {at}?", [f"𓀀𓀁 текст {at}-{n}" * 9 for n in range(9)]) for at in range(12)]
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put(cases, tmp_path, budget=0.05, price=PRICE)
        assert 0.02 < dollars(server) <= 0.05


def test_a_server_that_ignores_the_token_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reports ten times the allowed tokens: after the first answers, calls are sent only if that still fits."""

    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        made["usage"]["completion_tokens"] = 10 * asked.body["max_completion_tokens"]
        return made

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        judge = ContextPrecision("some-model", concurrency=1)
        outcome = put(MANY, tmp_path, judge, budget=0.2, price=PRICE)
        assert outcome.caller.spend.usd <= 0.2
        assert any(isinstance(one, Failure) for one in outcome.judgments.values())


def test_a_budget_spans_several_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two phases share a budget so small that calls have to wait for reservations in both."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        judge = ContextPrecision("some-model")
        caller = Caller(AnswerCache(tmp_path / "a.sqlite"), budget=0.02, price=PRICE)
        for half in (MANY[:20], MANY[20:]):
            BatchRunner(caller).ask([(judge, [task for one in half for task in judge.tasks(one)])])
        assert dollars(server) <= 0.02
        assert caller.spend.calls == len(server.calls)


def test_tasks_shared_by_two_judges_are_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judges differ only in how they use the grades."""
    first, second = ContextPrecision("m", k=3), ContextPrecision("m", k=5, relevant_from=3)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        answers = AnswerCache(tmp_path / "a.sqlite")
        wanted = [(judge, [t for one in MANY for t in judge.tasks(one)]) for judge in (first, second)]
        assert [len(left) for left in all_missing(answers, wanted)] == [120, 80]
        BatchRunner(Caller(answers)).ask(wanted)
        passages = [(asked.question, text) for asked in server.calls for text in asked.fenced.values()]
        assert len(passages) == len(set(passages)) == 200


def test_a_budget_requires_a_known_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked before the first request; a listed model on another server has no known price either."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("gpt-5.4-mini"), budget=1.0)
        assert isinstance(outcome.fatal, JudgeError)
        assert "--price" in str(outcome.fatal)
        assert server.asked == []


def test_nothing_is_sent_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing answers are failures; stored answers are used."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put([BYSTANDER], tmp_path)
        server.asked.clear()
        outcome = put([VICTIM, BYSTANDER], tmp_path, offline=True)
        assert server.asked == []
    assert outcome.kinds(VICTIM) == ["offline"] * 3
    assert outcome.kinds(BYSTANDER) == ["label"] * 3


def test_inside_a_running_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook."""

    async def notebook() -> list[str]:
        return put([VICTIM], tmp_path).kinds(VICTIM)

    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert asyncio.run(notebook()) == ["label"] * 3


def test_a_call_is_sent_if_its_maximum_cost_just_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One token per byte of messages and schema, plus 256; with a millionth of a dollar less it is not sent."""
    judge = ContextPrecision("some-model")
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put([VICTIM], tmp_path / "a", judge)
        probe, call = server.asked
        spent = completion("", probe)["usage"]["prompt_tokens"]
        messages = len(json.dumps(call.body["messages"], ensure_ascii=False).encode())
        most = messages + len(json.dumps(call.body["response_format"])) + 256
        for cap, kind in ((spent + most, "label"), (spent + most - 1, "budget")):
            made = put([VICTIM], tmp_path / kind, judge, budget=cap / 1e6, price=(1.0, 0.0))
            assert made.kinds(VICTIM) == [kind] * 3
    assert {one.attempts for one in made.judgments.values()} == {0}  # type: ignore[union-attr]


def test_requests_priced_per_request_are_charged_in_advance(tmp_path: Path) -> None:
    """Against the budget; requests without a price or that may not be sent are rejected and not counted."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    caller = Caller(answers, budget=1.0)
    caller.account.charge(4, 0.75, "rerank", "selector.x")
    caller.account.charge(0, None, "rerank", "selector.x")
    with pytest.raises(JudgeError, match="not enough is left for rerank, which costs .0.5000"):
        caller.account.charge(1, 0.5, "rerank", "selector.x")
    with pytest.raises(JudgeError, match="the price of rerank is not known; specify it as selector.x"):
        caller.account.charge(1, None, "rerank", "selector.x")
    assert caller.spend == Spend(calls=4, requests=4, usd=0.75)
    unlimited = Caller(answers)
    unlimited.account.charge(2, None, "rerank", "selector.x")
    assert unlimited.spend == Spend(calls=2, requests=2, unpriced=2)
    offline = Caller(answers, offline=True)
    offline.account.charge(0, 0.0, "rerank", "selector.x")
    with pytest.raises(JudgeError, match="1 requests are not in the cache"):
        offline.account.charge(1, 0.0, "rerank", "selector.x")


def test_a_price_is_required_only_under_a_budget(tmp_path: Path) -> None:
    """And only if something may be sent."""
    answers, judge = AnswerCache(tmp_path / "a.sqlite"), ContextPrecision("m", base_url="http://127.0.0.1:9/v1")
    Caller(answers).account.require_price(judge)
    Caller(answers, budget=1.0, offline=True).account.require_price(judge)
    Caller(answers, budget=1.0, price=(0.0, 0.0)).account.require_price(judge)
    with pytest.raises(JudgeError, match="the price of m at http://127.0.0.1:9/v1 is not known"):
        Caller(answers, budget=1.0).account.require_price(judge)
    tasks = judge.tasks(VICTIM)
    answers.note(dict.fromkeys(judge.addresses(tasks), Label(2)))
    BatchRunner(Caller(answers, budget=1.0)).ask([(judge, tasks)])  # all of it is stored


@pytest.mark.parametrize(
    ("raw", "unpriced"),
    [(Raw(500), 0), (Raw(hang=True), 1), (Raw(200, b"{}", reset_after=1, length=9), 1), (Raw(200, "[]"), 1)],
)
def test_what_may_have_been_charged_is_unknown(
    raw: Raw, unpriced: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted or invalid response, or a timeout; a refusal with an HTTP status is free."""
    judge = ContextPrecision("some-model", timeout=1.0)
    with Server(lambda _: raw) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, judge, retry_policy=RetryPolicy(attempts=1), price=PRICE)
    assert outcome.caller.spend.unpriced == unpriced


def test_no_call_is_made_at_an_unknown_price(tmp_path: Path) -> None:
    """Also if `ask` is called directly."""
    with Server() as server:
        judge = ContextPrecision("m", base_url=server.url)
        caller = Caller(AnswerCache(tmp_path / "a.sqlite"), budget=1.0)
        with pytest.raises(JudgeError, match="price"):
            asyncio.run(caller.ask(judge, judge.prompt(judge.tasks(VICTIM))))
        assert server.asked == []
