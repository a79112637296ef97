"""Stored answers: what is read back, what is recovered after damage, and their share of the costs."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from judged_questions import BYSTANDER, VICTIM, put
from llm_calls import PRICE, a_call
from openai_server import Raw, Server, completion, grade_all

from harness.core.errors import StoreError
from harness.llm import (
    AnswerCache,
    Completion,
    Failure,
    Label,
    Task,
    missing,
    stored,
)
from judges import ContextPrecision


def test_ten_thousand_stored_pairs(tmp_path: Path) -> None:
    """All are found again."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    tasks = [Task(f"q{at % 100}", (f"text {at}",)) for at in range(10_000)]
    judge = ContextPrecision("m")
    answers.note(dict.fromkeys(judge.addresses(tasks), Label(2)))
    found = AnswerCache(tmp_path / "a.sqlite").labels(judge.addresses(tasks))
    assert len(found) == 10_000


def test_what_the_answer_cache_returns(tmp_path: Path) -> None:
    """Labels, texts and failures unchanged; the first answer is kept, and it removes an earlier failure."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    label = Label(2, "why", "quote", "llm", ("windowed",))
    answers.note({"a": Failure("timeout", "slow", 2), "b": Completion(("one", "two"))})
    assert answers.failures(["a"]) == {"a": Failure("timeout", "slow", 2)}
    answers.note({"a": label})
    answers.note({"a": Label(0)})
    assert answers.labels(["a", "b", "c"]) == {"a": label, "b": Completion(("one", "two"))}
    assert answers.failures(["a"]) == {}


def test_bytes_per_token_are_measured(tmp_path: Path) -> None:
    """400 bytes were 100 tokens; calls with unknown token counts are ignored."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    assert answers.bytes_per_token("e", "m") is None
    answers.keep(a_call(), {"x": Label(1)})
    answers.keep(a_call(id="2", prompt_tokens=None), {})
    assert answers.bytes_per_token("e", "m") == 4.0
    assert answers.served(["x"]) == {"m-2": 1}


def test_a_damaged_cache_is_set_aside(tmp_path: Path) -> None:
    """Its answers have to be requested again; the damaged file is kept for inspection."""
    file = tmp_path / "a.sqlite"
    file.write_bytes(b"not a database" * 100)
    answers = AnswerCache(file)
    assert answers.labels(["a"]) == {}
    assert answers.damaged == 1
    assert (tmp_path / "a.sqlite.damaged-1").is_file()
    answers.note({"a": Label(1)})
    assert answers.labels(["a"]) == {"a": Label(1)}


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    """Simulated by a limit on the number of pages of the file."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    answers.guarded(lambda db: db.execute("PRAGMA max_page_count = 12"))
    with pytest.raises(StoreError, match="disk is full"):
        answers.keep(a_call(answer=os.urandom(200_000)), {})


def test_readable_answers_of_a_damaged_cache_are_recovered(tmp_path: Path) -> None:
    """From a file with a damaged page, all rows around it are recovered unchanged."""
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


def test_two_writers_of_one_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both get labels, and the file contains one per task."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        first = put([VICTIM, BYSTANDER], tmp_path)
        second = put([BYSTANDER, VICTIM], tmp_path)
    assert first.judgments == second.judgments
    rows = sqlite3.connect(tmp_path / "answers.sqlite").execute("SELECT COUNT(*) FROM labels").fetchone()
    assert rows == (6,)


def test_every_request_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With status, model and cost: a refusal with an HTTP status costs nothing and is not a separate call."""
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


def test_stored_outcomes_of_tasks(tmp_path: Path) -> None:
    """An answer, else the latest failure, else `offline`."""
    answers, judge = AnswerCache(tmp_path / "a.sqlite"), ContextPrecision("m", base_url="http://127.0.0.1:9/v1")
    tasks = [Task("q", (text,)) for text in "abc"]
    assert missing(answers, judge, tasks[::-1] * 2) == tasks
    addresses = judge.addresses(tasks)
    answers.note(dict(zip(addresses, [Label(2), Failure("timeout")], strict=False)))
    never = Failure("offline", "never sent to m at http://127.0.0.1:9/v1")
    found = stored(answers, judge, [*tasks[::-1], tasks[0]])
    assert list(found.items()) == list(zip(tasks, [Label(2), Failure("timeout"), never], strict=True))


def test_answers_share_the_cost_of_their_call(tmp_path: Path) -> None:
    """Time and money are divided among the given addresses; calls of unknown cost are counted separately."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    answers.keep(a_call(ms=10.0, usd=0.5), {"a": Label(1), "b": Label(2)})
    answers.keep(a_call(id="2", ms=4.0, usd=None), {"c": Label(0), "d": Failure("schema")})
    assert answers.shares(["a", "b", "c", "d", "a"]) == {"a": (5.0, 0.25), "b": (5.0, 0.25), "c": (4.0, 0.0)}
    assert answers.shares(["b"]) == {"b": (10.0, 0.5)}
    assert answers.paid(["a", "b", "c", "d"]) == (0.5, 1)
    assert answers.failures(["d"]) == {"d": Failure("schema")}


def test_answers_are_counted_per_model(tmp_path: Path) -> None:
    """Over more addresses than one SQL statement takes; of stored capabilities the latest are kept."""
    answers = AnswerCache(tmp_path / "a.sqlite")
    answers.keep(a_call(), {str(at): Label(1) for at in range(1100)})
    answers.keep(a_call(id="2", served="m-3"), {"x": Label(1)})
    assert answers.served([*map(str, range(1100)), "x"]) == {"m-2": 1100, "m-3": 1}
    assert answers.capabilities("e", "m") is None
    for found in ({"mode": "plain"}, {"mode": "json_object"}):
        answers.keep_capabilities("e", "m", found)
        assert answers.capabilities("e", "m") == found


def test_only_valid_answers_are_recovered(tmp_path: Path) -> None:
    """Together with their calls."""
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
