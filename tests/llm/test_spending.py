"""Money, pace and memory: budgets, prices, the gate, the archive."""

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from courtroom import BYSTANDER, VICTIM, case, put
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.errors import JudgeError, StoreError
from harness.llm import Archive, Caller, Failure, Label, Panel, Patience, Spend, Task, Written, all_missing
from harness.llm.archive import Call
from harness.llm.gate import Gate
from harness.llm.prices import Budget, Usage, find_price
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
        caller = Caller(Archive(tmp_path / "a.sqlite"), budget=0.02, price=PRICE)
        for half in (MANY[:20], MANY[20:]):
            Panel(caller).ask([(judge, [task for one in half for task in judge.tasks(one)])])
        assert dollars(server) <= 0.02
        assert caller.spend.calls == len(server.calls)


def test_what_two_judges_share_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that differ in what they make of the grades only."""
    first, second = ContextPrecision("m", k=3), ContextPrecision("m", k=5, relevant_from=3)
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        archive = Archive(tmp_path / "a.sqlite")
        wanted = [(judge, [t for one in MANY for t in judge.tasks(one)]) for judge in (first, second)]
        assert [len(left) for left in all_missing(archive, wanted)] == [120, 80]
        Panel(Caller(archive)).ask(wanted)
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
    assert price.most(100_000, 0) == pytest.approx(0.0125)
    assert find_price("no-such-model", "https://api.openai.com/v1") is None
    assert find_price("gpt-6-luna", "http://localhost:11434/v1") is None


def test_what_is_not_known_is_never_told_as_nothing() -> None:
    """Zero dollars and an unknown amount are different things."""
    spend = Spend()
    spend.add(None, None)
    assert spend.told == "an unknown amount for 1 requests"
    spend.add(Usage(10, 1), 0.5)
    assert spend.told == "$0.5000 and an unknown amount for 1 requests"


@pytest.mark.parametrize(
    "told",
    [None, {}, [], {"prompt_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": 1.5}],
)
def test_usage_that_cannot_be_true(told: Any) -> None:
    """Is no usage."""
    assert Usage.of(told) is None


def test_usage_with_details() -> None:
    """Cached and written tokens are parts of the prompt's."""
    details = {"cached_tokens": 3, "cache_write_tokens": 2}
    told = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": details}
    assert Usage.of(told) == Usage(9, 1, 3, 2)
    assert Usage.of({**told, "prompt_tokens_details": {"cached_tokens": 10}}) is None


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
        outcome = put(cases, tmp_path, ContextPrecision("m"), patience=Patience())
        assert all(isinstance(one, Label) for one in outcome.judgments.values())
        assert len(server.calls) <= 1.10 * 120
        assert server.refused > 0


def test_the_gate_closes_for_all() -> None:
    """After one refusal nobody passes before the time named, and fewer pass at once."""

    async def scene() -> tuple[float, float]:
        gate = Gate(8)
        gate.refused(0.05)
        begin = asyncio.get_running_loop().time()
        async with gate.passage():
            waited = asyncio.get_running_loop().time() - begin
        return waited, gate._limit

    waited, limit = asyncio.run(scene())
    assert waited >= 0.05
    assert limit == 4


def test_ten_thousand_stored_pairs(tmp_path: Path) -> None:
    """All come back, and nothing else is needed."""
    archive = Archive(tmp_path / "a.sqlite")
    tasks = [Task(f"q{at % 100}", (f"text {at}",)) for at in range(10_000)]
    judge = ContextPrecision("m")
    archive.note(dict.fromkeys(judge.addresses(tasks), Label(2)))
    found = Archive(tmp_path / "a.sqlite").labels(judge.addresses(tasks))
    assert len(found) == 10_000


def test_what_the_archive_gives_back(tmp_path: Path) -> None:
    """Labels, texts and failures as they were; a first answer stays, and it ends a failure."""
    archive = Archive(tmp_path / "a.sqlite")
    label = Label(2, "why", "quote", "llm", ("windowed",))
    archive.note({"a": Failure("timeout", "slow", 2), "b": Written(("one", "two"))})
    assert archive.failures(["a"]) == {"a": Failure("timeout", "slow", 2)}
    archive.note({"a": label})
    archive.note({"a": Label(0)})
    assert archive.labels(["a", "b", "c"]) == {"a": label, "b": Written(("one", "two"))}
    assert archive.failures(["a"]) == {}


def a_call(**changes: Any) -> Call:
    return Call("1", "e", "m", "m-2", "ok", 0.0, 1.0, 400, 100, 5, 0, 0.01, b"{}")._replace(**changes)


def test_bytes_per_token_are_learnt(tmp_path: Path) -> None:
    """400 bytes made 100 tokens; calls whose tokens are not known teach nothing."""
    archive = Archive(tmp_path / "a.sqlite")
    assert archive.bytes_per_token("e", "m") is None
    archive.keep(a_call(), {"x": Label(1)})
    archive.keep(a_call(id="2", prompt_tokens=None), {})
    assert archive.bytes_per_token("e", "m") == 4.0
    assert archive.served(["x"]) == {"m-2": 1}


def test_a_damaged_archive_is_set_aside(tmp_path: Path) -> None:
    """What it held has to be asked again; the damaged file is kept for who wants to look."""
    file = tmp_path / "a.sqlite"
    file.write_bytes(b"not a database" * 100)
    archive = Archive(file)
    assert archive.labels(["a"]) == {}
    assert archive.damaged == 1
    assert (tmp_path / "a.sqlite.damaged-1").is_file()
    archive.note({"a": Label(1)})
    assert archive.labels(["a"]) == {"a": Label(1)}


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """As SQLite tells it, by a limit on the file's pages."""
    archive = Archive(tmp_path / "a.sqlite")
    archive.guarded(lambda db: db.execute("PRAGMA max_page_count = 12"))
    with pytest.raises(StoreError, match="disk is full"):
        archive.keep(a_call(answer=os.urandom(200_000)), {})


def test_what_can_be_read_of_a_damaged_archive_is_saved(tmp_path: Path) -> None:
    """Answers are paid for: of a file with a torn page all rows around it are carried over, and none is invented."""
    file = tmp_path / "a.sqlite"
    archive = Archive(file)
    labels = {f"{at:064x}": Label(at % 4, f"why {at}") for at in range(4000)}
    archive.note(labels)
    archive.guarded(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    archive.close()
    raw = bytearray(file.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 8192] = os.urandom(8192)
    file.write_bytes(raw)
    again = Archive(file)
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
