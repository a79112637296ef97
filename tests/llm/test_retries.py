"""What is retried, how often, and when a server or a model is given up."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judged_questions import VICTIM, case, put
from llm_calls import MANY, PRICE
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.llm import (
    AnswerCache,
    BatchRunner,
    Caller,
    Failure,
    RetryPolicy,
    Task,
    missing,
    stored,
)
from harness.llm.batching import _interruptible
from harness.llm.transport import Refused
from judges import ContextPrecision


@pytest.mark.parametrize("kind", ["truncated", "invalid_json", "server"])
def test_a_model_that_always_fails_is_given_up(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncated at any length, prose, or down: after ten failed calls in a row no more are sent; failures say why."""

    def behave(asked: Asked) -> Any:
        if kind == "server":
            return Raw(500, b"", {"x-should-retry": "false"})
        made = completion("I would rather talk about it.", asked)
        made["choices"][0]["finish_reason"] = "length" if kind == "truncated" else "stop"
        made["usage"]["completion_tokens"] = asked.body["max_completion_tokens"]
        return made

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put(MANY, tmp_path, ContextPrecision("m", concurrency=1), price=PRICE)
        kinds = {one.kind for one in outcome.judgments.values() if isinstance(one, Failure)}
        assert kinds == {kind, "circuit_open"}
        assert len({asked.question for asked in server.calls}) <= 12
        assert any("not sent: 1" in one.detail for one in outcome.judgments.values() if isinstance(one, Failure))
        assert outcome.caller.spend.usd < 1.5


@pytest.mark.parametrize(
    ("refused", "failed", "turns", "ends"),
    [
        (Refused("server", ""), 4, 0, False),
        (Refused("server", ""), 5, 0, True),
        (Refused("timeout", ""), 1, 0, False),
        (Refused("timeout", ""), 2, 0, True),
        (Refused("rate_limit", ""), 9, 39, False),
        (Refused("rate_limit", ""), 0, 40, True),
        (Refused("rate_limit", "", wait=120.0), 0, 1, False),
        (Refused("rate_limit", "", wait=121.0), 0, 1, True),
    ],
)
def test_when_retries_end(refused: Refused, failed: int, turns: int, ends: bool) -> None:
    """After five failures, two timeouts, forty rate-limit refusals, or a requested wait of over two minutes."""
    assert RetryPolicy().ends(refused, failed, turns) == ends
    assert RetryPolicy(attempts=1).ends(Refused("timeout", ""), 1, 0)


@pytest.mark.parametrize(("luck", "pauses"), [(1.0, [1, 2, 3, 3]), (0.0, [0.5, 1, 1.5, 1.5])])
def test_pauses_double_up_to_the_longest(
    luck: float, pauses: list[float], slept: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is randomly between half and all of its length; the failure reports the number of attempts."""
    monkeypatch.setattr(random, "random", lambda: luck)
    with Server(lambda _: Raw(500)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, retry_policy=RetryPolicy(attempts=5, pause=1, longest=3))
        assert len(server.calls) == 5
    assert slept == pauses
    assert [(one.kind, one.attempts) for one in outcome.judgments.values()] == [("server", 5)] * 3  # type: ignore[union-attr]


def test_nothing_more_is_sent_after_ten_failed_calls_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not nine and not eleven; a successful call resets the count."""
    down = Raw(500, b"", {"x-should-retry": "false"})
    answered: list[Asked] = []

    def behave(asked: Asked) -> Any:
        answered.append(asked)
        return grade_all(asked) if len(answered) == 10 else down

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put(MANY, tmp_path, ContextPrecision("m", concurrency=1))
        assert len(server.calls) == 20
    details = Counter(one.detail for one in outcome.judgments.values() if isinstance(one, Failure))
    unsent = [message for message in details if message.startswith("not sent: 10 calls in a row failed: HTTP 500")]
    assert [details[message] for message in unsent] == [200]
    with Server(lambda _: down) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put(MANY, tmp_path, ContextPrecision("n", concurrency=1))
        assert len(server.calls) == 10


def test_a_truncated_answer_is_requested_twice_with_more_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times the token limit each, at most 8192; the halves of the batch are then sent only once."""

    def behave(asked: Asked) -> Any:
        made = completion("", asked)
        made["choices"][0]["finish_reason"] = "length"
        return made

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([case("Why?", ["One.", "Two."])], tmp_path, ContextPrecision("m"))
        limits = [asked.body["max_completion_tokens"] for asked in server.calls]
    assert limits == [600, 2400, 8192, 420, 420]
    assert outcome.caller.spend.calls == 3
    assert {one.kind for one in outcome.judgments.values()} == {"truncated"}  # type: ignore[union-attr]


def test_a_call_with_several_requests_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, truncated, complete: three requests besides the probe."""

    def cut(asked: Asked) -> Any:
        made = completion("", asked)
        made["choices"][0]["finish_reason"] = "length"
        return made

    ends = [lambda asked: Raw(500), cut, grade_all]
    with Server(lambda asked: ends.pop(0)(asked)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path)
    assert (outcome.caller.spend.calls, outcome.caller.spend.requests) == (1, 4)
    rows = outcome.caller.answers.guarded(lambda db: db.execute("SELECT status FROM calls ORDER BY begun").fetchall())
    assert rows == [("ok",), ("server",), ("truncated",), ("ok",)]
    assert outcome.kinds(VICTIM) == ["label"] * 3


def test_a_refusal_of_the_model_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a single passage; more tokens would not help."""

    def behave(asked: Asked) -> Any:
        made = completion("", asked)
        made["choices"][0]["message"] = {"content": None, "refusal": "No."}
        return made

    about = case("Why?", ["One."])
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([about], tmp_path)
        assert len(server.calls) == 1
    assert list(outcome.judgments.values()) == [Failure("refusal", "No.", 1)]


def test_repeated_calls_do_not_count_as_failed_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six calls and their six repetitions are all sent."""
    with Server(lambda _: "no") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put(
            [case(f"Question {at}?", ["One."]) for at in range(6)], tmp_path, ContextPrecision("m", concurrency=1)
        )
        assert len(server.calls) == 12
    assert {one.kind for one in outcome.judgments.values()} == {"invalid_json"}  # type: ignore[union-attr]


def test_later_calls_start_with_the_sufficient_token_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as many tokens, and never fewer again."""

    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        if asked.body["max_completion_tokens"] < 1000:
            made["choices"][0]["finish_reason"] = "length"
        return made

    async def scene(caller: Caller, judge: ContextPrecision) -> None:
        for at in range(3):
            await caller.ask(judge, judge.prompt(judge.tasks(case(f"Question {at}?", ["One."]))))
        await caller.close()

    with Server(behave) as server:
        judge = ContextPrecision("m", base_url=server.url)
        asyncio.run(scene(Caller(AnswerCache(tmp_path / "a.sqlite")), judge))
        assert [asked.body["max_completion_tokens"] for asked in server.calls] == [420, 1680, 1680, 1680]


class OfOneDocument(ContextPrecision):
    """Calls about one question share a long text."""

    def shared(self, batch: Sequence[Task]) -> str:
        return f"All about {batch[0].query}"


def test_calls_that_share_a_document_wait_for_the_first_of_them(tmp_path: Path) -> None:
    """Nine calls about three documents: the first about each is sent ahead, so that the server can cache it."""
    cases = [case(f"Question {at}?", [f"Passage {at}-{n}." for n in range(3)]) for at in range(3)]
    with Server() as server:
        judge = OfOneDocument("m", base_url=server.url, batch=1, concurrency=1)
        tasks = [task for one in cases for task in judge.tasks(one)]
        answers = AnswerCache(tmp_path / "a.sqlite")
        BatchRunner(Caller(answers)).ask([(judge, tasks)])
        asked = [call.question for call in server.calls]
    assert set(asked[:3]) == {"Question 0?", "Question 1?", "Question 2?"}
    assert len(asked) == 9
    assert missing(answers, judge, tasks) == []


def test_stopped_calls_are_not_retried(tmp_path: Path) -> None:
    """Calls in flight are finished but not retried; the others are cancelled."""
    judge = ContextPrecision("m", batch=1, concurrency=1)
    for at, (answer, first) in enumerate(((grade_all, "label"), (lambda _: Raw(500), "server"))):
        caller = Caller(AnswerCache(tmp_path / f"{at}.sqlite"))

        def behave(asked: Asked, caller: Caller = caller, answer: Any = answer) -> Any:
            caller.stopped = True
            return answer(asked)

        with Server(behave) as server:
            prompter = replace(judge, base_url=server.url)
            tasks = prompter.tasks(VICTIM)
            BatchRunner(caller).ask([(prompter, tasks)])
            assert len(server.calls) == 1
        found = stored(caller.answers, prompter, tasks).values()
        kinds = [one.kind if isinstance(one, Failure) else "label" for one in found]
        assert kinds == [first, "cancelled", "cancelled"]


def test_the_second_interrupt_stops_the_process(tmp_path: Path) -> None:
    """The first one only stops the sending of calls."""
    caller = Caller(AnswerCache(tmp_path / "a.sqlite"))

    async def scene() -> Any:
        with _interruptible(caller):
            signal.raise_signal(signal.SIGINT)
            while not caller.stopped:
                await asyncio.sleep(0)
            return signal.getsignal(signal.SIGINT)

    assert asyncio.run(scene()) is signal.default_int_handler


def test_an_invalid_answer_is_requested_again_and_then_in_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five passages that the model cannot grade: all twice, then 3 and 2, 2 and 1, 1 and 1 in turn."""
    with Server(lambda _: "no") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([case("Why?", [f"Passage {at}." for at in range(5)])], tmp_path, ContextPrecision("m"))
        assert [len(asked.slots) for asked in server.calls] == [5, 5, 3, 2, 1, 1, 1, 2, 1, 1]
    assert {one.kind for one in outcome.judgments.values()} == {"invalid_json"}  # type: ignore[union-attr]


def test_the_rest_of_a_batch_is_sent_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four passages: no answer, then two, then the other two in one call."""
    answers = [
        lambda asked: "no",
        lambda asked: {slot: entry for slot, entry in grade_all(asked).items() if slot in ("c02", "c04")},
        grade_all,
    ]
    with Server(lambda asked: answers.pop(0)(asked)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        about = case("Why?", [f"Passage {at}." for at in range(4)])
        assert put([about], tmp_path, ContextPrecision("m")).kinds(about) == ["label"] * 4
        assert [len(asked.slots) for asked in server.calls] == [4, 4, 2]


def test_a_refused_batch_is_halved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batch would be refused again."""
    for status, code, sizes in ((413, "", [4, 2, 1, 1, 2, 1, 1]), (400, "content_filter", [4, 2, 1, 1, 2, 1, 1])):
        raw = Raw(status, {"error": {"message": "no", "code": code}})
        with Server(lambda _, raw=raw: raw) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            put([case("Why?", [f"Passage {at}." for at in range(4)])], tmp_path / str(status), ContextPrecision("m"))
            assert [len(asked.slots) for asked in server.calls] == sizes
