"""Money, pace and memory: budgets, prices, the gate, the archive."""

import asyncio
import json
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from judged_questions import BYSTANDER, VICTIM, case, put
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.core.errors import JudgeError, StoreError
from harness.llm import (
    AnswerCache,
    BatchRunner,
    Caller,
    Completion,
    Estimate,
    Failure,
    Label,
    RetryPolicy,
    Spend,
    Task,
    all_missing,
    estimate,
    missing,
    stored,
)
from harness.llm import rate_limiter as limiters
from harness.llm.answer_cache import Call
from harness.llm.batching import _interruptible
from harness.llm.prices import Budget, Price, Usage, find_price
from harness.llm.rate_limiter import RateLimiter
from harness.llm.request import prompt_bytes
from harness.llm.transport import Refused
from judges import ContextPrecision

MANY = [case(f"Question {at}?", [f"Passage {at}-{n}." for n in range(10)]) for at in range(40)]
PRICE = (1.0, 2.0)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


def dollars(server: Server) -> float:
    """What the server itself counts."""
    return (server.prompt_tokens * PRICE[0] + server.output_tokens * PRICE[1]) / 1e6


@pytest.mark.parametrize("cap", [0.0, 1e-9, 0.001, 0.005, 0.02, 0.03])
def test_a_budget_is_never_exceeded(cap: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the server's own count, whatever is in flight at once; the rest are failures, and the books agree."""
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
        # With more money the next run goes on where this one stopped.
        paid = {asked.user for asked in server.calls}
        server.asked.clear()
        again = put(MANY, tmp_path, budget=1.0, price=PRICE)
        assert all(isinstance(one, Label) for one in again.judgments.values())
        assert not paid & {asked.user for asked in server.calls}


def test_a_budget_that_fits_exactly_suffices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most that probe and one call can cost, to the cent of a cent."""
    judge = ContextPrecision("some-model")
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        spent = put([VICTIM], tmp_path / "a", judge, budget=1.0, price=PRICE).caller.spend.usd
        tight = put([VICTIM], tmp_path / "b", judge, budget=spent, price=PRICE)
    assert spent > 0
    assert tight.kinds(VICTIM) == ["budget"] * 3  # what may be spent has to fit, not only what is


def test_text_that_is_dear_to_tokenize_stays_in_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that counts a token for every byte, as tokenizers at worst do."""

    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        made["usage"]["prompt_tokens"] = len(str(asked.body["messages"]).encode())
        return made

    cases = [case(f"问题 {at}?", [f"𓀀𓀁 текст {at}-{n}" * 9 for n in range(9)]) for at in range(12)]
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put(cases, tmp_path, budget=0.05, price=PRICE)
        assert 0.02 < dollars(server) <= 0.05


def test_a_server_that_ignores_the_limit_is_reckoned_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts ten times what it was allowed to answer: after the first answers nothing more is sent than fits."""

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


def test_a_budget_outlives_a_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims first, judgments then, with one budget so tight that calls have to wait for money in both."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        judge = ContextPrecision("some-model")
        caller = Caller(AnswerCache(tmp_path / "a.sqlite"), budget=0.02, price=PRICE)
        for half in (MANY[:20], MANY[20:]):
            BatchRunner(caller).ask([(judge, [task for one in half for task in judge.tasks(one)])])
        assert dollars(server) <= 0.02
        assert caller.spend.calls == len(server.calls)


def test_what_two_judges_share_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that differ in what they make of the grades only."""
    first, second = ContextPrecision("m", k=3), ContextPrecision("m", k=5, relevant_from=3)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        answers = AnswerCache(tmp_path / "a.sqlite")
        wanted = [(judge, [t for one in MANY for t in judge.tasks(one)]) for judge in (first, second)]
        assert [len(left) for left in all_missing(answers, wanted)] == [120, 80]
        BatchRunner(Caller(answers)).ask(wanted)
        passages = [(asked.question, text) for asked in server.calls for text in asked.fenced.values()]
        assert len(passages) == len(set(passages)) == 200


def test_a_probe_that_met_trouble_is_not_taken_for_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server comes back, and grades the wrong way round: it is found out; where it stays away, nothing is sent."""
    answers: list[Asked] = []

    def backwards(asked: Asked) -> Any:
        answers.append(asked)
        if len(answers) <= 3:  # as often as a call is patient
            return Raw(500)
        return {slot: {"grade": 0 if "100" in asked.fenced[slot] else 3} for slot in asked.slots}

    with Server() as server:
        server.probe = backwards
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert "wrong way round" in str(put(MANY, tmp_path, ContextPrecision("m", concurrency=1)).fatal)
        assert server.calls == []
        server.probe = lambda asked: Raw(500, b"", {"x-should-retry": "false"})
        server.asked.clear()
        outcome = put(MANY, tmp_path)
        assert {one.kind for one in outcome.judgments.values() if isinstance(one, Failure)} == {"server"}
        assert (len(server.asked), server.calls) == (3, [])


@pytest.mark.parametrize("kind", ["truncated", "invalid_json", "server"])
def test_a_model_that_cannot_do_it_is_not_asked_for_ever(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off at any length, in prose, or down:

    after ten calls in a row no more are sent, and each failure says why.
    """

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
        assert kinds == {kind}
        assert len({asked.question for asked in server.calls}) <= 12
        assert any("not sent: 1" in one.detail for one in outcome.judgments.values() if isinstance(one, Failure))
        assert outcome.caller.spend.usd < 1.5


def test_an_unknown_price_refuses_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first request; a model of a known name on another server is unknown too."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("gpt-5.4-mini"), budget=1.0)
        assert isinstance(outcome.fatal, JudgeError)
        assert "--price" in str(outcome.fatal)
        assert server.asked == []


def test_prices_of_the_list() -> None:
    """Per million tokens, cached ones cheaper; what is written to the cache counts in the most a call can cost."""
    price = find_price("gpt-6-luna", "https://api.openai.com/v1")
    assert price is not None
    assert price.usd(Usage(100_000, 0)) == pytest.approx(0.01)
    assert price.usd(Usage(100_000, 0, cached=100_000)) == pytest.approx(0.001)
    assert price.max_usd(100_000, 0) == pytest.approx(0.0125)
    assert find_price("no-such-model", "https://api.openai.com/v1") is None
    assert find_price("gpt-6-luna", "http://localhost:11434/v1") is None


def test_what_is_not_known_is_never_told_as_nothing() -> None:
    """Zero dollars and an unknown amount are different things."""
    spend = Spend()
    spend.add(None, None)
    assert spend.summary == "an unknown amount for 1 requests"
    spend.add(Usage(10, 1), 0.5)
    assert spend.summary == "$0.5000 and an unknown amount for 1 requests"


@pytest.mark.parametrize(
    "expected",
    [None, {}, [], {"prompt_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": 1.5}],
)
def test_usage_that_cannot_be_true(expected: Any) -> None:
    """Is no usage."""
    assert Usage.of(expected) is None


def test_usage_with_details() -> None:
    """Cached and written tokens are parts of the prompt's."""
    details = {"cached_tokens": 3, "cache_write_tokens": 2}
    record = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": details}
    assert Usage.of(record) == Usage(9, 1, 3, 2)
    assert Usage.of({**record, "prompt_tokens_details": {"cached_tokens": 10}}) is None


def test_a_budget_waits_for_what_is_under_way() -> None:
    """A call that fits only once another turns out cheaper is made; one that can never fit is not."""

    async def scene() -> list[bool]:
        budget = Budget(1.0)
        first = await budget.reserve(0.8)
        second = asyncio.create_task(budget.reserve(0.5))
        never = await budget.reserve(1.5)
        await budget.settle(0.8, 0.1)
        return [first, await second, never]

    assert asyncio.run(scene()) == [True, True, False]


def test_a_storm_of_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that bears 25 requests a second: at most 1.10 requests a call, and no failure."""
    with Server(rate=25) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        cases = [case(f"Question {at}?", ["Text."]) for at in range(120)]
        outcome = put(cases, tmp_path, ContextPrecision("m"), retry_policy=RetryPolicy())
        assert all(isinstance(one, Label) for one in outcome.judgments.values())
        assert len(server.calls) <= 1.10 * 120
        assert server.refused > 0


def test_the_gate_closes_for_all() -> None:
    """After one refusal nobody passes before the time named, and fewer pass at once."""

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


def test_ten_thousand_stored_pairs(tmp_path: Path) -> None:
    """All come back, and nothing else is needed."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    tasks = [Task(f"q{at % 100}", (f"text {at}",)) for at in range(10_000)]
    judge = ContextPrecision("m")
    answers.note(dict.fromkeys(judge.addresses(tasks), Label(2)))
    found = AnswerCache(tmp_path / "a.sqlite").labels(judge.addresses(tasks))
    assert len(found) == 10_000


def test_what_the_archive_gives_back(tmp_path: Path) -> None:
    """Labels, texts and failures as they were; a first answer stays, and it ends a failure."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    label = Label(2, "why", "quote", "llm", ("windowed",))
    answers.note({"a": Failure("timeout", "slow", 2), "b": Completion(("one", "two"))})
    assert answers.failures(["a"]) == {"a": Failure("timeout", "slow", 2)}
    answers.note({"a": label})
    answers.note({"a": Label(0)})
    assert answers.labels(["a", "b", "c"]) == {"a": label, "b": Completion(("one", "two"))}
    assert answers.failures(["a"]) == {}


def a_call(**changes: Any) -> Call:
    return Call("1", "e", "m", "m-2", "ok", 0.0, 1.0, 400, 100, 5, 0, 0.01, b"{}")._replace(**changes)


def test_bytes_per_token_are_learnt(tmp_path: Path) -> None:
    """400 bytes made 100 tokens; calls whose tokens are not known teach nothing."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    assert answers.bytes_per_token("e", "m") is None
    answers.keep(a_call(), {"x": Label(1)})
    answers.keep(a_call(id="2", prompt_tokens=None), {})
    assert answers.bytes_per_token("e", "m") == 4.0
    assert answers.served(["x"]) == {"m-2": 1}


def test_a_damaged_archive_is_set_aside(tmp_path: Path) -> None:
    """What it held has to be asked again; the damaged file is kept for who wants to look."""
    file = tmp_path / "a.sqlite"
    file.write_bytes(b"not a database" * 100)
    answers = AnswerCache(file)
    assert answers.labels(["a"]) == {}
    assert answers.damaged == 1
    assert (tmp_path / "a.sqlite.damaged-1").is_file()
    answers.note({"a": Label(1)})
    assert answers.labels(["a"]) == {"a": Label(1)}


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """As SQLite tells it, by a limit on the file's pages."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    answers.guarded(lambda db: db.execute("PRAGMA max_page_count = 12"))
    with pytest.raises(StoreError, match="disk is full"):
        answers.keep(a_call(answer=os.urandom(200_000)), {})


def test_what_can_be_read_of_a_damaged_archive_is_saved(tmp_path: Path) -> None:
    """Answers are paid for: of a file with a torn page all rows around it are carried over, and none is invented."""
    file = tmp_path / "a.sqlite"
    answers = AnswerCache(file)
    labels = {f"{at:064x}": Label(at % 4, f"why {at}") for at in range(4000)}
    answers.note(labels)
    answers.guarded(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    answers.close()
    raw = bytearray(file.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 8192] = os.urandom(8192)
    file.write_bytes(raw)
    again = AnswerCache(file)
    again.examine()
    assert again.damaged == 1
    found = again.labels(list(labels))
    assert again.saved == len(found) > 2000
    assert all(labels[address] == label for address, label in found.items())


def test_two_writers_on_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both get labels, and the file holds one for each task."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        first = put([VICTIM, BYSTANDER], tmp_path)
        second = put([BYSTANDER, VICTIM], tmp_path)
    assert first.judgments == second.judgments
    rows = sqlite3.connect(tmp_path / "answers.sqlite").execute("SELECT COUNT(*) FROM labels").fetchone()
    assert rows == (6,)


def test_nothing_is_sent_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Misses are failures; what is stored is used."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put([BYSTANDER], tmp_path)
        server.asked.clear()
        outcome = put([VICTIM, BYSTANDER], tmp_path, offline=True)
        assert server.asked == []
    assert outcome.kinds(VICTIM) == ["offline"] * 3
    assert outcome.kinds(BYSTANDER) == ["label"] * 3


REFUSALS = {
    "response_format": ("json_schema is not supported", "json_object"),
    "response_format.type": ("unknown response_format", "json_object"),
}


@pytest.mark.parametrize("parameter", REFUSALS)
def test_a_server_without_schemas(parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses json_schema once, is asked for json_object from then on, also by the next launch."""

    def behave(asked: Asked) -> Any:
        kind = asked.body.get("response_format", {}).get("type")
        if kind == "json_schema":
            return Raw(400, {"error": {"message": REFUSALS[parameter][0], "param": parameter}})
        return (
            {slot: {"grade": 3 if "100" in text else 0} for slot, text in asked.fenced.items()}
            if asked.is_probe
            else (grade_all(asked))
        )

    with Server(behave) as server:
        server.probe = behave
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3
        server.asked.clear()
        assert put([BYSTANDER], tmp_path).kinds(BYSTANDER) == ["label"] * 3
        assert [asked.body["response_format"]["type"] for asked in server.asked] == ["json_object"]


def test_a_server_that_ignores_the_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It chats unless asked in plain words: the probe finds out."""

    def behave(asked: Asked) -> Any:
        if "response_format" in asked.body:
            return "I think the first one is best."
        answers = {slot: {"grade": 3 if "100" in text else 0} for slot, text in asked.fenced.items()}
        return answers if asked.is_probe else grade_all(asked)

    with Server(behave) as server:
        server.probe = behave
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3


def test_a_server_that_knows_max_tokens_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked with that from then on."""

    def behave(asked: Asked) -> Any:
        if "max_completion_tokens" in asked.body:
            return Raw(422, {"error": {"message": "extra fields not permitted: max_completion_tokens"}})
        return (
            {s: {"grade": 3 if "100" in t else 0} for s, t in asked.fenced.items()}
            if asked.is_probe
            else grade_all(asked)
        )

    with Server(behave) as server:
        server.probe = behave
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3
        assert "max_tokens" in server.asked[-1].body


def test_a_setting_the_model_refuses_is_not_dropped_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user chose it; the user leaves it out."""

    def behave(asked: Asked) -> Any:
        return Raw(400, {"error": {"message": "only the default is supported", "param": "temperature"}})

    with Server() as server:
        server.probe = behave
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("m", temperature=0.5))
    assert "refuses temperature=0.5; leave it out" in str(outcome.fatal)


def test_a_model_that_thinks_first_gets_more_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at the first limit, whole at four times as much; later calls begin there."""

    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        if asked.body["max_completion_tokens"] < 1500:
            made["choices"][0] = {"message": {"content": ""}, "finish_reason": "length"}
        return made

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3
        assert len(server.calls) == 2


def test_from_inside_a_running_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook."""

    async def notebook() -> list[str]:
        return put([VICTIM], tmp_path).kinds(VICTIM)

    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert asyncio.run(notebook()) == ["label"] * 3


def test_a_call_is_sent_where_the_most_it_can_cost_just_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token for each byte of messages and form, and 256 around them; with a millionth of a dollar less it is not."""
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


def test_what_is_not_counted_is_taken_for_the_most_by_what_was_seen() -> None:
    """A server took twice what it might: an uncounted call of 0.1 is reckoned as 0.2, and so is the next one."""

    async def scene() -> Budget:
        budget = Budget(1.0)
        for spent in (0.2, None):
            assert await budget.reserve(0.1)
            await budget.settle(0.1, spent)
        return budget

    budget = asyncio.run(scene())
    assert not budget.charge(0.31)  # 0.2 + 0.2 + 2 * 0.31 > 1
    assert budget.charge(0.3)


def test_what_was_reserved_and_not_used_is_free_again() -> None:
    """Two halves fit at once; a call that cost less than it might leaves the rest."""

    async def scene() -> list[bool]:
        budget = Budget(1.0)
        made = [await budget.reserve(0.5), await budget.reserve(0.5), budget.charge(0.1)]
        await budget.settle(0.5, 0.0)
        await budget.settle(0.5, 0.25)
        await budget.settle(0.0, 0.0)
        return [*made, budget.charge(0.75), budget.charge(0.01)]

    assert asyncio.run(scene()) == [True, True, False, True, False]


def test_a_call_waits_for_money_that_is_under_way(tmp_path: Path) -> None:
    """Until the other one has turned out cheaper; in the next event loop too."""
    caller = Caller(AnswerCache(tmp_path / "a.sqlite"), budget=1.0)
    budget = caller._budget

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


def test_prices_given_by_hand() -> None:
    """Dollars per million tokens of prompt and of answer; nothing is dearer for being cached."""
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
    """All of a prompt may be cached or written; ten million tokens are no request."""
    assert Usage.of(expected) == usage


def test_what_was_spent_is_added_up() -> None:
    """All kinds of tokens; nothing is told where nothing was asked."""
    spend = Spend()
    assert spend.figures() == {}
    assert spend.summary == "$0.0000"
    for _ in range(2):
        spend.add(Usage(10, 5, 3, 2), 0.25)
        spend.requests += 1
    expected = {"requests": 2, "prompt_tokens": 20, "cached_tokens": 6, "written_tokens": 4, "output_tokens": 10}
    assert spend.figures() == {"calls": 0.0, "usd": 0.5, "unpriced": 0.0, **expected}
    assert spend.summary == "$0.5000"


def test_requests_that_cost_by_number_are_charged_before_they_are_sent(tmp_path: Path) -> None:
    """Against the budget; what has no price, or may not be sent, is refused and not counted."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    caller = Caller(answers, budget=1.0)
    caller.charge(4, 0.75, "rerank", "selector.x")
    caller.charge(0, None, "rerank", "selector.x")
    with pytest.raises(JudgeError, match="does not leave the .0.5000 that rerank takes"):
        caller.charge(1, 0.5, "rerank", "selector.x")
    with pytest.raises(JudgeError, match="the price of rerank is not known; give it as selector.x"):
        caller.charge(1, None, "rerank", "selector.x")
    assert caller.spend == Spend(calls=4, requests=4, usd=0.75)
    unlimited = Caller(answers)
    unlimited.charge(2, None, "rerank", "selector.x")
    assert unlimited.spend == Spend(calls=2, requests=2, unpriced=2)
    offline = Caller(answers, offline=True)
    offline.charge(0, 0.0, "rerank", "selector.x")
    with pytest.raises(JudgeError, match="1 requests are not in the cache"):
        offline.charge(1, 0.0, "rerank", "selector.x")


def test_only_a_budget_needs_a_price(tmp_path: Path) -> None:
    """And only where something may be sent."""
    answers, judge = AnswerCache(tmp_path / "a.sqlite"), ContextPrecision("m", base_url="http://127.0.0.1:9/v1")
    Caller(answers).require_price(judge)
    Caller(answers, budget=1.0, offline=True).require_price(judge)
    Caller(answers, budget=1.0, price=(0.0, 0.0)).require_price(judge)
    with pytest.raises(JudgeError, match="the price of m at http://127.0.0.1:9/v1 is not known"):
        Caller(answers, budget=1.0).require_price(judge)
    tasks = judge.tasks(VICTIM)
    answers.note(dict.fromkeys(judge.addresses(tasks), Label(2)))
    BatchRunner(Caller(answers, budget=1.0)).ask([(judge, tasks)])  # all of it is stored


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
def test_when_patience_ends(refused: Refused, failed: int, turns: int, ends: bool) -> None:
    """After five failures, two timeouts, forty turns, or a wait of over two minutes."""
    assert RetryPolicy().ends(refused, failed, turns) == ends
    assert RetryPolicy(attempts=1).ends(Refused("timeout", ""), 1, 0)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were to be made; none is."""
    lines: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        lines.extend([seconds] if seconds else [])
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    return lines


@pytest.mark.parametrize(("luck", "pauses"), [(1.0, [1, 2, 3, 3]), (0.0, [0.5, 1, 1.5, 1.5])])
def test_pauses_double_up_to_the_longest(
    luck: float, pauses: list[float], slept: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each between its half and its whole, at random; the failure tells how often it was tried."""
    monkeypatch.setattr(random, "random", lambda: luck)
    with Server(lambda _: Raw(500)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, retry_policy=RetryPolicy(attempts=5, pause=1, longest=3))
        assert len(server.calls) == 5
    assert slept == pauses
    assert [(one.kind, one.attempts) for one in outcome.judgments.values()] == [("server", 5)] * 3  # type: ignore[union-attr]


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
def test_what_closes_the_gate(
    raw: Raw,
    waits: list[float | None],
    requests: int,
    slept: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever says "too fast", and a server in trouble that names a time; one of over two minutes is not waited for."""
    lines: list[float | None] = []
    monkeypatch.setattr(RateLimiter, "refused", lambda _, wait: lines.append(wait))
    with Server(lambda _: raw) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, retry_policy=RetryPolicy(attempts=1, turns=2))
        assert len(server.calls) == requests
    assert lines == waits
    assert slept == []  # the gate paces
    assert {one.attempts for one in outcome.judgments.values()} == {requests}  # type: ignore[union-attr]


def test_every_request_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How it went, who answered, what it took: a refusal with a status costs nothing, and counts as no call."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
    ends = [lambda asked: Raw(500), lambda asked: completion(grade_all(asked), asked, model="m-2", usage=usage)]
    with Server(lambda asked: ends.pop(0)(asked)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("m"), price=PRICE)
        endpoint = server.url
        sizes = [len(json.dumps(asked.body["messages"], ensure_ascii=False).encode()) for asked in server.asked]
        probe = completion('{"c01": {"grade": 3}, "c02": {"grade": 0}}', server.asked[0])["usage"]
    query = (
        "SELECT endpoint, model, served, status, bytes_sent, prompt_tokens, output_tokens, cached_tokens, usd"
        " FROM calls ORDER BY begun"
    )
    rows = outcome.caller.answers.guarded(lambda db: db.execute(query).fetchall())
    tokens = (probe["prompt_tokens"], probe["completion_tokens"])
    dollars = (tokens[0] + 2 * tokens[1]) / 1e6
    assert rows == [
        (endpoint, "m", "m", "ok", sizes[0], *tokens, 0, dollars),
        (endpoint, "m", "", "server", sizes[1], None, None, None, 0.0),
        (endpoint, "m", "m-2", "ok", sizes[2], 100, 10, 40, 0.00012),
    ]
    spend = outcome.caller.spend
    assert (spend.calls, spend.requests, spend.unpriced) == (1, 3, 0)
    assert (spend.prompt_tokens, spend.output_tokens) == (tokens[0] + 100, tokens[1] + 10)
    assert spend.usd == pytest.approx(dollars + 0.00012)


@pytest.mark.parametrize(
    ("raw", "unpriced"),
    [(Raw(500), 0), (Raw(hang=True), 1), (Raw(200, b"{}", reset_after=1, length=9), 1), (Raw(200, "[]"), 1)],
)
def test_what_may_have_been_charged_is_unknown(
    raw: Raw, unpriced: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer cut off on the way or out of all form, or none in time; a refusal with a status is free."""
    judge = ContextPrecision("some-model", timeout=1.0)
    with Server(lambda _: raw) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, judge, retry_policy=RetryPolicy(attempts=1), price=PRICE)
    assert outcome.caller.spend.unpriced == unpriced


def test_nothing_more_is_sent_after_ten_calls_in_a_row_that_bring_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not nine, and not eleven; one that brings something begins the count anew."""
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
    unsent = [
        message for message in details if message.startswith("not sent: 10 calls in a row brought nothing: HTTP 500")
    ]
    assert [details[message] for message in unsent] == [200]
    with Server(lambda _: down) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put(MANY, tmp_path, ContextPrecision("n", concurrency=1))
        assert len(server.calls) == 10


def test_a_cut_answer_is_asked_for_at_more_length_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At four times the length each, 8192 at most; its halves then only once."""

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


def test_a_call_counts_once_whatever_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, cut, and whole: three requests besides that of the probe."""

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


def test_a_model_that_declines_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """About a passage alone; more room would not help."""

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


def test_repairs_do_not_count_as_calls_that_bring_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six calls and their six repairs are all sent."""
    with Server(lambda _: "no") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put(
            [case(f"Question {at}?", ["One."]) for at in range(6)], tmp_path, ContextPrecision("m", concurrency=1)
        )
        assert len(server.calls) == 12
    assert {one.kind for one in outcome.judgments.values()} == {"invalid_json"}  # type: ignore[union-attr]


def test_the_next_call_begins_where_the_last_one_was_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the room, and not less than that again."""

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
    """Nine calls about three documents: one about each goes ahead, which puts it into the server's cache."""
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


def test_what_is_stopped_is_not_tried_again(tmp_path: Path) -> None:
    """What is under way is finished, and if it failed that is all; the rest is cancelled."""
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


def test_the_second_interrupt_is_meant(tmp_path: Path) -> None:
    """The first one only stops the sending."""
    caller = Caller(AnswerCache(tmp_path / "a.sqlite"))

    async def scene() -> Any:
        with _interruptible(caller):
            signal.raise_signal(signal.SIGINT)
            while not caller.stopped:
                await asyncio.sleep(0)
            return signal.getsignal(signal.SIGINT)

    assert asyncio.run(scene()) is signal.default_int_handler


def test_no_call_is_made_at_an_unknown_price(tmp_path: Path) -> None:
    """By whatever way it comes."""
    with Server() as server:
        judge = ContextPrecision("m", base_url=server.url)
        caller = Caller(AnswerCache(tmp_path / "a.sqlite"), budget=1.0)
        with pytest.raises(JudgeError, match="price"):
            asyncio.run(caller.ask(judge, judge.prompt(judge.tasks(VICTIM))))
        assert server.asked == []


def test_what_is_out_of_form_is_asked_for_again_and_then_in_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five passages that nobody can grade: all twice, then 3 and 2, 2 and 1, 1 and 1 in turn."""
    with Server(lambda _: "no") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([case("Why?", [f"Passage {at}." for at in range(5)])], tmp_path, ContextPrecision("m"))
        assert [len(asked.slots) for asked in server.calls] == [5, 5, 3, 2, 1, 1, 1, 2, 1, 1]
    assert {one.kind for one in outcome.judgments.values()} == {"invalid_json"}  # type: ignore[union-attr]


def test_what_is_left_of_a_batch_is_asked_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four passages: nothing of them, then two, then the other two in one call."""
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
    """The same again would be refused again; a server in trouble is not asked in halves."""
    for status, code, sizes in ((413, "", [4, 2, 1, 1, 2, 1, 1]), (400, "content_filter", [4, 2, 1, 1, 2, 1, 1])):
        raw = Raw(status, {"error": {"message": "no", "code": code}})
        with Server(lambda _, raw=raw: raw) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            put([case("Why?", [f"Passage {at}." for at in range(4)])], tmp_path / str(status), ContextPrecision("m"))
            assert [len(asked.slots) for asked in server.calls] == sizes


def test_a_model_that_never_answers_in_form_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the probe was put in each of the three modes."""
    with Server() as server:
        server.probe = lambda _: "The first one."
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path)
        assert "does not answer in the form asked for: invalid_json" in str(outcome.fatal)
        kinds = [asked.body.get("response_format", {}).get("type") for asked in server.asked]
        assert kinds == ["json_schema", "json_object", None]


def test_what_fails_without_a_probe_fails_as_the_latest_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three probes, each refused in its own way; the fourth call is not sent."""
    statuses = [500, 502, 503]
    with Server() as server:
        server.probe = lambda _: Raw(statuses.pop(0), b"", {"x-should-retry": "false"})
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([case("Why?", ["1", "2", "3", "4", "5"])], tmp_path, ContextPrecision("m", batch=1))
        assert len(server.asked) == 3
    found = [one.detail[:8] for one in outcome.judgments.values() if isinstance(one, Failure)]
    assert found == ["HTTP 500", "HTTP 502", "HTTP 503", "HTTP 503", "HTTP 503"]


def test_a_probe_that_fails_when_all_is_stopped_is_the_last(tmp_path: Path) -> None:
    """The calls that waited for it are cancelled."""
    caller = Caller(AnswerCache(tmp_path / "a.sqlite"))

    def probed(_: Asked) -> Any:
        caller.stopped = True
        return Raw(500)

    with Server() as server:
        server.probe = probed
        judge = ContextPrecision("m", base_url=server.url, batch=1)
        tasks = judge.tasks(VICTIM)
        BatchRunner(caller).ask([(judge, tasks)])
        assert len(server.asked) == 1
    found = stored(caller.answers, judge, tasks).values()
    assert [one.kind for one in found if isinstance(one, Failure)] == ["server", "cancelled", "cancelled"]


def test_a_mode_that_was_refused_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in plain words the server may be out of form once."""
    answers = [lambda asked: "The first one.", lambda asked: {"c01": {"grade": 3}, "c02": {"grade": 0}}]

    def probed(asked: Asked) -> Any:
        if "response_format" in asked.body:
            return Raw(400, {"error": {"message": "no", "param": "response_format"}})
        return answers.pop(0)(asked)

    with Server() as server:
        server.probe = probed
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3
        kinds = [asked.body.get("response_format", {}).get("type") for asked in server.asked]
        assert kinds == ["json_schema", "json_object", None, None, None]


@pytest.mark.parametrize(("answer", "beside"), [(1, 0), (2, 1), (3, 2)])
def test_any_grades_the_right_way_round_pass(
    answer: int, beside: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may be strict or mild."""
    with Server() as server:
        server.probe = lambda _: {"c01": {"grade": answer}, "c02": {"grade": beside}}
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3


def test_the_probe_is_put_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To each server and model; what it found is kept for the next launch."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for cases in (MANY[:3], MANY[3:6]):
            put(cases, tmp_path, ContextPrecision("m"))
        assert sum(asked.is_probe for asked in server.asked) == 1
        found = AnswerCache(tmp_path / "answers.sqlite").capabilities(server.url, "m")
        assert found == {"mode": "json_schema", "limit": "max_completion_tokens", "without": []}


def test_what_is_known_of_tasks(tmp_path: Path) -> None:
    """An answer, else what the latest attempt came to, else that nobody asked."""
    answers, judge = AnswerCache(tmp_path / "a.sqlite"), ContextPrecision("m", base_url="http://127.0.0.1:9/v1")
    tasks = [Task("q", (text,)) for text in "abc"]
    assert missing(answers, judge, tasks[::-1] * 2) == tasks
    addresses = judge.addresses(tasks)
    answers.note(dict(zip(addresses, [Label(2), Failure("timeout")], strict=False)))
    never = Failure("offline", "never asked of m at http://127.0.0.1:9/v1")
    found = stored(answers, judge, [*tasks[::-1], tasks[0]])
    assert list(found.items()) == list(zip(tasks, [Label(2), Failure("timeout"), never], strict=True))


def test_what_asking_would_take(tmp_path: Path) -> None:
    """Two calls: a token per four bytes or as many as were learnt, and what is expected and the most of an answer."""
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


def test_estimates_in_words() -> None:
    """Of two, one of unknown price, the price of both is unknown."""
    known, unknown = Estimate(1, 10, 0.25, 0.5), Estimate(2, 5, None, None)
    assert known.plus(known) == Estimate(2, 20, 0.5, 1.0)
    assert known.plus(unknown) == unknown.plus(known) == Estimate(3, 15, None, None)
    assert (
        known.summary("judge") == "judge: 1 calls; about 10 tokens, $0.2500 expected, $0.5000 at most without retries"
    )
    assert str(unknown) == "about 5 tokens, price unknown"
    assert str(Estimate()) == "nothing to ask"


def test_an_answer_bears_its_share_of_its_call(tmp_path: Path) -> None:
    """Of time and money, by how many of the addresses came with it; unknown dollars are counted apart."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    answers.keep(a_call(ms=10.0, usd=0.5), {"a": Label(1), "b": Label(2)})
    answers.keep(a_call(id="2", ms=4.0, usd=None), {"c": Label(0), "d": Failure("schema")})
    assert answers.shares(["a", "b", "c", "d", "a"]) == {"a": (5.0, 0.25), "b": (5.0, 0.25), "c": (4.0, 0.0)}
    assert answers.shares(["b"]) == {"b": (10.0, 0.5)}
    assert answers.paid(["a", "b", "c", "d"]) == (0.5, 1)
    assert answers.failures(["d"]) == {"d": Failure("schema")}


def test_who_answered_is_counted_over_many_addresses(tmp_path: Path) -> None:
    """More than one statement looks up; what a server says it can do is kept as the latest says."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    answers.keep(a_call(), {str(at): Label(1) for at in range(1100)})
    answers.keep(a_call(id="2", served="m-3"), {"x": Label(1)})
    assert answers.served([*map(str, range(1100)), "x"]) == {"m-2": 1100, "m-3": 1}
    assert answers.capabilities("e", "m") is None
    for found in ({"mode": "plain"}, {"mode": "json_object"}):
        answers.keep_capabilities("e", "m", found)
        assert answers.capabilities("e", "m") == found


def test_only_answers_that_can_be_read_are_salvaged(tmp_path: Path) -> None:
    """With the calls they came with; no label in a strange form among them."""
    old = AnswerCache(tmp_path / "old.sqlite")
    old.keep(a_call(), {"a": Label(1, "weißt du"), "b": Completion(("one",))})
    old.keep(a_call(id="2", usd=None), {"i": Label(1, "weißt du")})
    rows = [("c", "{", "1"), ("d", "{}", "1"), ("e", "[]", "1"), ("f", '{"grade": 1, "flags": [], "new": 1}', "1")]
    rows += [("g", '{"flags": 1}', "1"), ("h", b"\xff", "1")]
    rows += [("j", '{"grade": 99, "flags": []}', "1"), ("k", '{"grade": true, "flags": []}', "1")]
    old.write(lambda db: old.insert(db, "labels", rows, replace=False))
    old.close()
    answers = AnswerCache(tmp_path / "new.sqlite")
    answers.recover(tmp_path / "old.sqlite")
    assert answers.saved == 3
    label = Label(1, "weißt du")
    assert answers.labels(list("abcdefghi")) == {"a": label, "b": Completion(("one",)), "i": label}
    assert answers.paid(["a", "i"]) == (0.01, 1)
    kept = answers.guarded(lambda db: db.execute("SELECT label FROM labels WHERE address = 'a'").fetchone()[0])
    assert "weißt du" in kept


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The gate's clock, which stands still until it is set."""
    made = SimpleNamespace(now=100.0)
    made.monotonic = lambda: made.now
    monkeypatch.setattr(limiters, "time", made)
    return made


def test_the_first_refusal_is_believed(clock: SimpleNamespace) -> None:
    """The gate opens at the time it names; a later one does not open it earlier."""
    limiter = RateLimiter(8)
    limiter.refused(0.25)
    assert limiter._opens == 100.25
    limiter.refused(0.0)
    assert limiter._opens == 100.25


def test_a_burst_of_refusals_halves_once(clock: SimpleNamespace) -> None:
    """Those sent before the first refusal was known move only the time at which the gate opens."""
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


def test_refusals_in_a_row_close_the_gate_for_a_minute_at_most(clock: SimpleNamespace) -> None:
    """Twice as long each time; one passes at a time at least, two seconds apart at most."""
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
    """Of the last ten seconds: six within one second, then 1 / 5.4 s; what was served before does not count."""
    limiter = RateLimiter(8)
    for at, served in ((100.0, 9), (111.0, 3), (111.5, 2), (112.0, 1), (112.25, 2), (120.5, 0)):
        clock.now = at
        for _ in range(served):
            limiter.passed()
    assert limiter._best_second(120.5) == 6
    limiter.refused(None)
    assert limiter._spacing == pytest.approx(1 / 5.4)
    assert limiter._best_second(121.0) == 5  # those of 111 are ten seconds old
    assert limiter._best_second(130.0) == 0


def test_success_opens_the_gate_again(clock: SimpleNamespace) -> None:
    """One more in flight a round, up to the most; the spacing shrinks by 3 % for each calm second, by 20 % at most."""
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


def test_a_passage_takes_its_place_in_the_row(clock: SimpleNamespace) -> None:
    """The next one is due a spacing later; what has passed flies no more."""
    limiter = RateLimiter(2)
    limiter._spacing = 0.25

    async def scene() -> int:
        async with limiter.turn():
            return limiter._flying

    assert asyncio.run(scene()) == 1
    assert (limiter._flying, limiter._next) == (0, 100.25)
