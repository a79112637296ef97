"""Misbehaving servers: no score is invented, failures have the right kind, other queries are unaffected."""

import asyncio
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judged_questions import BYSTANDER, QUICK, VICTIM, Outcome, put
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.core.errors import JudgeError
from harness.llm.prices import Usage
from harness.llm.transport import Connection, Refused, Reply, _reason, retry_after
from judges import ContextPrecision

KEY = "sk-test-0123456789abcdef"

Bad = Callable[[Asked], Any]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def judged_with(bad: Bad, store: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Outcome, Server]:
    """The outcome if the victim's question is answered by `bad` and the bystander's correctly."""

    def behave(asked: Asked) -> Any:
        return bad(asked) if asked.question == VICTIM.query.text else grade_all(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return put([VICTIM, BYSTANDER], store, **options), server


def good(asked: Asked) -> str:
    return json.dumps(grade_all(asked))


def without(asked: Asked, slot: str) -> dict[str, Any]:
    return {name: entry for name, entry in grade_all(asked).items() if name != slot}


def every(value: Any) -> Bad:
    """An answer with the grade `value` in every slot."""
    return lambda asked: {slot: {"why": "", "grade": value} for slot in asked.slots}


def http(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Bad:
    return lambda _: Raw(status, {"error": {"message": message, **error}}, headers or {})


def changed(**changes: Any) -> Bad:
    """A valid completion with some parts replaced."""
    return lambda asked: completion(grade_all(asked), asked, **changes)


def message(**changes: Any) -> Bad:
    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        made["choices"][0]["message"] |= changes
        return made

    return behave


def finish(reason: str, content: str | None = None) -> Bad:
    def behave(asked: Asked) -> Any:
        made = completion(content if content is not None else grade_all(asked), asked)
        made["choices"][0]["finish_reason"] = reason
        return made

    return behave


def usage(**expected: Any) -> Bad:
    return lambda asked: completion(grade_all(asked), asked, usage=expected or None)


LABEL = "label"
ANSWERS: dict[str, tuple[Bad, str]] = {
    "no entry at all": (lambda asked: {}, "missing_label"),
    "an entry too many": (lambda asked: {**grade_all(asked), "c99": {"why": "", "grade": 3}}, "extra_label"),
    "renamed slots": (lambda asked: {s.upper(): e for s, e in grade_all(asked).items()}, "extra_label"),
    "slots without leading zero": (lambda a: {s.replace("0", ""): e for s, e in grade_all(a).items()}, "extra_label"),
    "a key twice": (lambda asked: good(asked)[:-1] + ', "c01": {"why": "", "grade": 0}}', "schema"),
    "a field twice": (lambda asked: re.sub(r'("grade": 2)', r'\1, "grade": 0', good(asked)), "schema"),
    "grade true": (every(True), "schema"),
    "grade 2.0": (every(2.0), "schema"),
    "grade as text": (every("2"), "schema"),
    "grade 7": (every(7), "schema"),
    "grade -1": (every(-1), "schema"),
    "grade null": (every(None), "schema"),
    "grade in a list": (every([2]), "schema"),
    "a word for a grade": (every("relevant"), "schema"),
    "entry is the grade": (lambda asked: dict.fromkeys(asked.slots, 2), "schema"),
    "a field missing": (lambda asked: {slot: {"grade": 2} for slot in asked.slots}, "schema"),
    "a field too many": (lambda a: {s: {"why": "", "grade": 2, "sure": 1} for s in a.slots}, "schema"),
    "why is a number": (lambda asked: {slot: {"why": 3, "grade": 2} for slot in asked.slots}, "schema"),
    "a list": (lambda asked: json.dumps(list(grade_all(asked).values())), "schema"),
    "a number": (lambda asked: "2", "schema"),
    "NaN": (lambda asked: good(asked).replace('"grade": 2', '"grade": NaN'), "invalid_json"),
    "prose": (lambda asked: "All passages are relevant, grade 3.", "invalid_json"),
    "JSON and prose": (lambda asked: good(asked) + "\nI hope this helps!", "invalid_json"),
    "prose and JSON": (lambda asked: "Here you go: " + good(asked), "invalid_json"),
    "two objects": (lambda asked: good(asked) + good(asked), "invalid_json"),
    "single quotes": (lambda asked: good(asked).replace('"', "'"), "invalid_json"),
    "brackets without end": (lambda asked: "[" * 100_000, "invalid_json"),
    "empty": (lambda asked: "", "invalid_json"),
    "white space": (lambda asked: " \n\t ", "invalid_json"),
    "content null": (message(content=None), "invalid_json"),
    "content a list": (message(content=[{"type": "text", "text": "{}"}]), "invalid_json"),
    "fenced JSON": (lambda asked: f"```json\n{good(asked)}\n```", LABEL),
    "thoughts first": (lambda asked: f"<think>c01 might be {{3}}</think>\n{good(asked)}", LABEL),
    "thoughts without a beginning": (lambda asked: f"so c01 is 0\n</think>{good(asked)}", LABEL),
    "half a surrogate pair": (lambda asked: good(asked).replace("seen", "\\ud800"), LABEL),
    "a very long why": (lambda asked: good(asked).replace("seen", "x" * 90_000), LABEL),
    "refused": (message(refusal="I would rather not."), "refusal"),
    "filtered": (finish("content_filter"), "content_filter"),
    "cut short": (finish("length", '{"c01": {"why": "se'), "truncated"),
    "cut short though whole": (finish("length"), "truncated"),
    "no choices": (changed(choices=[]), "server"),
    "choices null": (changed(choices=None), "server"),
    "choices of text": (changed(choices=["{}"]), "server"),
    "message null": (changed(choices=[{"message": None}]), "server"),
    "usage missing": (usage(), LABEL),
    "usage negative": (usage(prompt_tokens=-5, completion_tokens=3), LABEL),
    "usage absurd": (usage(prompt_tokens=10**12, completion_tokens=3), LABEL),
    "usage as text": (usage(prompt_tokens="12", completion_tokens="3"), LABEL),
    "usage boolean": (usage(prompt_tokens=True, completion_tokens=True), LABEL),
    "usage a list": (lambda asked: completion(grade_all(asked), asked, usage=[1, 2]), LABEL),
    "another model answers": (changed(model="some-model-2031-01-01"), LABEL),
    "model null": (changed(model=None), LABEL),
    "400 too long": (
        http(400, "maximum context length is 8192 tokens", code="context_length_exceeded"),
        "context_too_long",
    ),
    "400 too long, in words": (http(400, "the prompt exceeds the context window"), "context_too_long"),
    "400 filtered": (http(400, "flagged", code="content_filter"), "content_filter"),
    "400": (http(400, "something is off"), "bad_request"),
    "403 moderated": (http(403, "Your input was flagged by moderation"), "content_filter"),
    "400 that mentions temperature": (http(400, "the text about room temperature cannot be read"), "bad_request"),
    "409": (http(409), "server"),
    "413": (http(413), "context_too_long"),
    "418": (http(418), "bad_request"),
    "422": (http(422), "bad_request"),
    "429 for ever": (http(429, headers={"Retry-After": "0"}), "rate_limit"),
    "429, come back in five minutes": (http(429, headers={"Retry-After": "300"}), "rate_limit"),
    "500": (http(500), "server"),
    "500 with a page": (lambda _: Raw(500, "<h1>Oops</h1>", {"Content-Type": "text/html"}), "server"),
    "502 empty": (lambda _: Raw(502, b""), "server"),
    "503, do not retry": (http(503, headers={"x-should-retry": "false"}), "server"),
    "529": (http(529), "server"),
    "200 with an error": (lambda _: Raw(200, {"error": {"message": "overloaded"}}), "server"),
    "200 with a page": (lambda _: Raw(200, "<html>Sign in</html>", {"Content-Type": "text/html"}), "server"),
    "200 with half a JSON": (lambda asked: Raw(200, json.dumps(completion(grade_all(asked), asked))[:99]), "server"),
    "200 with a list": (lambda _: Raw(200, "[]"), "server"),
    "204": (lambda _: Raw(204, b"", {"Content-Length": "0"}), "server"),
    "fewer bytes than announced": (lambda _: Raw(200, b'{"id": 1', length=5000, reset_after=8), "network"),
    "reset in the body": (lambda a: Raw(200, completion(grade_all(a), a), reset_after=40), "network"),
    "reset at once": (lambda _: Raw(200, b"", reset_after=0, length=10), "network"),
    "no gzip at all": (lambda _: Raw(200, b"plain", {"Content-Encoding": "gzip"}), "network"),
    "a bomb of gzip": (lambda _: Raw(200, gzip.compress(b" " * 50_000_000), {"Content-Encoding": "gzip"}), "server"),
    "drips": (lambda asked: Raw(200, completion(grade_all(asked), asked), drip=0.05), "timeout"),
    "hangs": (lambda _: Raw(hang=True), "timeout"),
    "redirects": (lambda _: Raw(307, b"", {"Location": "http://127.0.0.1:9/elsewhere"}), "server"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_hostile_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each passage of the victim has a label or a failure of the expected kind; the bystander's all have labels."""
    bad, expected = ANSWERS[name]
    # An endless answer is waited for only once; meanwhile the bystander's must arrive, even on a busy machine.
    once = {"judge": ContextPrecision("some-model", timeout=5.0), "retry_policy": replace(QUICK, attempts=1)}
    outcome, server = judged_with(bad, tmp_path, monkeypatch, **(once if expected == "timeout" else {}))
    assert outcome.fatal is None
    assert outcome.kinds(BYSTANDER) == [LABEL] * 3
    assert outcome.verdict(BYSTANDER).scores["context_precision"].value == 1.0
    assert outcome.kinds(VICTIM) == [expected] * 3
    score = outcome.verdict(VICTIM).scores["context_precision"]
    if expected == LABEL:
        assert score.value == 1.0
    else:
        assert (score.value, score.low, score.high) == (None, 0.0, 1.0)
    if not name.startswith("usage"):
        # All usage that the server counted is recorded, also for failed answers.
        spend = outcome.caller.spend
        assert (spend.prompt_tokens, spend.output_tokens) == (server.prompt_tokens, server.output_tokens)
    assert_no_key(tmp_path, outcome)


def assert_no_key(store: Path, outcome: Outcome) -> None:
    for file in filter(Path.is_file, store.rglob("*")):
        assert KEY.encode() not in file.read_bytes()
    assert KEY not in repr(outcome.judgments)


@pytest.mark.parametrize("name", [name for name in ANSWERS if name.startswith("usage")])
def test_missing_usage_means_unknown_cost(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The label is valid; its cost is reported as unknown, and counts as the maximum against the budget."""
    outcome, _ = judged_with(ANSWERS[name][0], tmp_path, monkeypatch, price=(1.0, 2.0), budget=1.0)
    assert outcome.caller.spend.unpriced == 1
    assert "unknown amount for 1 request" in outcome.caller.spend.summary


FATAL: dict[str, tuple[Bad, str]] = {
    "401": (http(401, f"Incorrect API key provided: {KEY}"), "auth"),
    "402": (http(402, "Payment required"), "quota"),
    "403": (http(403, "not for you"), "auth"),
    "404": (http(404, "The model `some-model` does not exist", code="model_not_found"), "unknown_model"),
    "429 no money": (http(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
    "200 no money": (lambda _: Raw(200, {"error": {"code": "insufficient_quota", "message": "quota"}}), "quota"),
}


@pytest.mark.parametrize("name", FATAL)
def test_fatal_refusals_stop_the_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names server and model but not the key; finished answers are kept; nothing is scored instead."""
    bad, kind = FATAL[name]
    calls: list[Asked] = []

    def behave(asked: Asked) -> Any:
        calls.append(asked)
        return grade_all(asked) if len(calls) == 1 else bad(asked)

    judge = ContextPrecision("some-model", batch=1, concurrency=1)
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM, BYSTANDER], tmp_path, judge)
        assert isinstance(outcome.fatal, JudgeError)
        assert f"some-model at {server.url}: {kind}" in str(outcome.fatal)
    assert KEY not in str(outcome.fatal)
    assert_no_key(tmp_path, outcome)
    kinds = outcome.kinds(VICTIM) + outcome.kinds(BYSTANDER)
    assert kinds.count(LABEL) == 1
    assert len(calls) == 2  # four more calls were waiting


def test_an_answer_truncated_at_any_byte_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the server reports it (`length`): a truncated object is not JSON."""
    whole: list[str] = []
    at = [0]

    def behave(asked: Asked) -> Any:
        text = good(asked)
        whole.append(text)
        return finish("length" if at[0] % 2 else "stop", text[: min(at[0], len(text) - 1)])(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for cut in range(0, 140, 7):
            at[0] = cut
            judge = ContextPrecision("some-model", seed=cut)
            assert set(put([VICTIM], tmp_path, judge).kinds(VICTIM)) <= {"invalid_json", "truncated"}
    assert len(whole[0]) > 60


def test_every_prefix_of_an_answer_is_refused() -> None:
    """At all offsets, tested on the parser."""
    judge = ContextPrecision("m")
    prompt = judge.prompt(judge.tasks(VICTIM))
    text = json.dumps({slot: {"why": "é", "grade": 2} for slot in prompt.slots}, ensure_ascii=False)
    assert not prompt.schema.read(text, list(prompt.slots)).bad
    for cut in range(len(text)):
        assert not prompt.schema.read(text[:cut], list(prompt.slots)).entries


def test_a_missing_slot_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call lacks c02, the second asks for c02 alone: three labels from two calls."""
    outcome, server = judged_with(lambda asked: without(asked, "c02"), tmp_path, monkeypatch)
    assert outcome.kinds(VICTIM) == [LABEL] * 3
    asked = [a for a in server.calls if a.question == VICTIM.query.text]
    assert [len(a.slots) for a in asked] == [3, 1]


def test_one_filtered_passage_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A content filter rejects one passage: halves, then single passages; the other two get labels."""

    def bad(asked: Asked) -> Any:
        return finish("content_filter")(asked) if "Pine two." in asked.user else grade_all(asked)

    outcome, _ = judged_with(bad, tmp_path, monkeypatch)
    assert outcome.kinds(VICTIM) == [LABEL, "content_filter", LABEL]
    score = outcome.verdict(VICTIM).scores["context_precision"]
    assert score.value is None
    assert (score.low, score.high) == (2 / 3, 1.0)


@pytest.mark.parametrize("after", ["0", "0.2", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "inf", "nan", "-3", ""])
def test_any_retry_after_is_survived(after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused once with this header, then served."""
    seen: list[Asked] = []

    def bad(asked: Asked) -> Any:
        seen.append(asked)
        return Raw(429, {"error": {"message": "wait"}}, {"Retry-After": after}) if len(seen) == 1 else grade_all(asked)

    outcome, _ = judged_with(bad, tmp_path, monkeypatch)
    assert outcome.kinds(VICTIM) == [LABEL] * 3
    assert len(seen) == 2


def test_retry_after_in_all_its_forms() -> None:
    """Milliseconds, seconds or a date; invalid values are ignored."""
    now = 1445412480.0  # the date below
    assert retry_after("250", "9", now) == 0.25
    assert retry_after(None, "1.5", now) == 1.5
    assert retry_after(None, "Wed, 21 Oct 2015 07:28:10 GMT", now) == 10
    for nonsense in ("soon", "inf", "nan", "-3", ""):
        assert retry_after(None, nonsense, now) is None
    assert retry_after(None, None, now) is None


def test_no_retry_if_the_server_forbids_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one request for the victim."""
    _, server = judged_with(ANSWERS["503, do not retry"][0], tmp_path, monkeypatch)
    assert sum(a.question == VICTIM.query.text for a in server.calls) == 1


def test_a_transient_error_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 500, a connection reset, then the answer."""
    seen: list[Asked] = []
    ends = [Raw(500, b"x"), Raw(200, b"{}", reset_after=1, length=9)]

    def bad(asked: Asked) -> Any:
        seen.append(asked)
        return ends[len(seen) - 1] if len(seen) <= 2 else grade_all(asked)

    outcome, _ = judged_with(bad, tmp_path, monkeypatch)
    assert outcome.kinds(VICTIM) == [LABEL] * 3


def test_a_redirect_carries_nothing_to_another_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key nor the texts."""
    with Server() as thief:
        place = {"Location": f"{thief.url}/chat/completions"}
        judged_with(lambda _: Raw(307, b"", place), tmp_path, monkeypatch)
        assert thief.asked == []


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1:{port}/v1", "http://127.0.0.1:9/v1", "http://nowhere.invalid/v1"]
)
def test_no_connection(address: str, tmp_path: Path) -> None:
    """TLS to a plain port, a closed port, an unknown host: every task fails as `network`, none is scored."""
    with Server() as server:
        judge = ContextPrecision("some-model", base_url=address.format(port=server.port), timeout=60.0)
        outcome = put([VICTIM], tmp_path, judge)
    assert outcome.kinds(VICTIM) == ["network"] * 3
    assert outcome.verdict(VICTIM).scores["ap_at_k"].value is None


def test_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable to set."""
    monkeypatch.delenv("OPENAI_API_KEY")
    outcome = put([VICTIM], tmp_path, ContextPrecision("some-model", base_url="http://127.0.0.1:9/v1"))
    assert isinstance(outcome.fatal, JudgeError)
    assert "set OPENAI_API_KEY" in str(outcome.fatal)


def test_failures_are_never_taken_for_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run repeats only the failed calls."""
    broken = [True]

    def behave(asked: Asked) -> Any:
        return Raw(500) if broken[0] and asked.question == VICTIM.query.text else grade_all(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM, BYSTANDER], tmp_path).kinds(VICTIM) == ["server"] * 3
        broken[0] = False
        server.asked.clear()
        assert put([VICTIM, BYSTANDER], tmp_path).kinds(VICTIM) == [LABEL] * 3
        assert [a.question for a in server.asked] == [VICTIM.query.text]


def test_raw_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Valid and invalid ones, with their cost."""
    import zlib

    outcome, _ = judged_with(every("2"), tmp_path, monkeypatch, price=(1.0, 1.0))
    rows = outcome.caller.answers.guarded(lambda db: db.execute("SELECT status, usd, answer FROM calls").fetchall())
    assert {"ok"} == {status for status, _, _ in rows}
    assert all(usd > 0 for _, usd, _ in rows)
    assert any(b'\\"grade\\": \\"2\\"' in zlib.decompress(answer) for _, _, answer in rows)


def sent_to(raw: Any) -> Reply | Refused:
    """The result of one request to a server that responds with `raw`."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}

    async def scene(url: str) -> Reply | Refused:
        connection = Connection(url, "m")
        try:
            return await connection.send(body, 5.0)
        except Refused as refused:
            return refused
        finally:
            await connection.close()

    with Server(lambda _: raw) as server:
        return asyncio.run(scene(server.url))


def error(status: int, message: Any = "no", headers: dict[str, str] | None = None, **error: Any) -> Raw:
    return Raw(status, {"error": {"message": message, **error}}, headers or {})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (error(401), Refused("auth", "HTTP 401: no")),
        (error(403), Refused("auth", "HTTP 403: no")),
        (error(402), Refused("quota", "HTTP 402: no")),
        (error(404), Refused("unknown_model", "HTTP 404: no")),
        (error(429, code="insufficient_quota"), Refused("quota", "HTTP 429: no")),
        (error(429, type="insufficient_quota"), Refused("quota", "HTTP 429: no")),
        (error(429, code="billing_limit"), Refused("quota", "HTTP 429: no")),
        (error(429, code="slow"), Refused("rate_limit", "HTTP 429: no", True)),
        (error(429, headers={"Retry-After": "2"}), Refused("rate_limit", "HTTP 429: no", True, 2.0)),
        (error(429, headers={"retry-after-ms": "250"}), Refused("rate_limit", "HTTP 429: no", True, 0.25)),
        (error(408, headers={"Retry-After": "2"}), Refused("timeout", "HTTP 408: no", True, 2.0)),
        (error(413), Refused("context_too_long", "HTTP 413: no")),
        (error(412), Refused("bad_request", "HTTP 412: no")),
        (error(400, code="context_length_exceeded"), Refused("context_too_long", "HTTP 400: no")),
        (error(400, "Context too large"), Refused("context_too_long", "HTTP 400: Context too large")),
        (error(500, "length of context"), Refused("context_too_long", "HTTP 500: length of context")),
        (error(400, "no context"), Refused("bad_request", "HTTP 400: no context")),
        (error(400, "a name too long"), Refused("bad_request", "HTTP 400: a name too long")),
        (error(400, code="content_filter"), Refused("content_filter", "HTTP 400: no")),
        (error(400, type="content_filter"), Refused("content_filter", "HTTP 400: no")),
        (error(400, param="seed"), Refused("bad_request", "HTTP 400: no", parameter="seed")),
        (error(400, param="store.x"), Refused("bad_request", "HTTP 400: no", parameter="store")),
        (error(422, "no seed here"), Refused("bad_request", "HTTP 422: no seed here")),
        (error(400, "the text on temperature"), Refused("bad_request", "HTTP 400: the text on temperature")),
        *(
            (error(400, words), Refused("bad_request", f"HTTP 400: {words}", parameter=name))
            for words, name in (
                ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
                ("Unsupported parameter: 'max_completion_tokens' is not supported", "max_completion_tokens"),
                ("unknown field `seed`", "seed"),
                ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
                ("this model does not support the parameter temperature", "temperature"),
                ("Invalid value for response_format", "response_format"),
            )
        ),
        (error(403, "flagged", type="moderation"), Refused("content_filter", "HTTP 403: flagged")),
        (error(400, param="messages"), Refused("bad_request", "HTTP 400: no")),
        (error(418, "no seed here"), Refused("bad_request", "HTTP 418: no seed here")),
        (error(409), Refused("server", "HTTP 409: no", True)),
        (error(500), Refused("server", "HTTP 500: no", True)),
        (error(503, headers={"Retry-After": "2"}), Refused("server", "HTTP 503: no", True, 2.0)),
        (error(503, headers={"x-should-retry": "false"}), Refused("server", "HTTP 503: no")),
        (error(500, {"message": "deep  \n inside"}), Refused("server", "HTTP 500: deep inside", True)),
        (error(500, "x" * 301), Refused("server", f"HTTP 500: {'x' * 300}", True)),
        (error(500, {"code": 5}), Refused("server", "HTTP 500: {'code': 5}", True)),
        (Raw(500, {"error": "plain"}), Refused("server", "HTTP 500: plain", True)),
        (Raw(500, "<h1>Oops</h1>"), Refused("server", "HTTP 500: <h1>Oops</h1>", True)),
        (
            error(500, f"key {KEY}, or sk-another_0-key."),
            Refused("server", "HTTP 500: key [redacted], or [redacted].", True),
        ),
        (error(500, "risk-management-of sk-short"), Refused("server", "HTTP 500: risk-management-of sk-short", True)),
    ],
)
def test_what_a_status_means(raw: Raw, expected: Refused) -> None:
    """The kind, the message, whether and when to retry, and the unsupported parameter."""
    expected.body = expected.detail.encode()
    assert sent_to(raw) == expected


def test_an_oversized_answer_is_cut_off() -> None:
    """Nine million bytes after decompression."""
    bomb = gzip.compress(b" " * 9_000_000)
    found = sent_to(Raw(200, bomb, {"Content-Encoding": "gzip"}))
    assert found == Refused("server", "the answer is larger than 8 MB", answered=True)


def test_a_broken_connection_is_retried(tmp_path: Path) -> None:
    """Broken within an answer, which may have been charged, or before it."""
    found = sent_to(Raw(200, b"{}", reset_after=1, length=9))
    assert isinstance(found, Refused)
    assert (found.kind, found.again, found.answered) == ("network", True, True)
    outcome = put([VICTIM], tmp_path, ContextPrecision("some-model", base_url="http://127.0.0.1:9/v1"))
    assert {(one.kind, one.attempts) for one in outcome.judgments.values()} == {("network", 3)}  # type: ignore[union-attr]


def test_a_request_that_takes_too_long_is_repeated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request may have been charged."""
    with Server(lambda _: Raw(hang=True)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("some-model", timeout=1.0))
        assert len(server.calls) == 2
    assert outcome.kinds(VICTIM) == ["timeout"] * 3


def test_a_redirect_is_reported() -> None:
    """With the fix."""
    found = sent_to(Raw(307, b"", {"Location": "http://127.0.0.1:9/"}))
    assert isinstance(found, Refused)
    assert (found.kind, found.again) == ("server", False)
    assert found.detail == "HTTP 307: the server redirects; set base_url to its new address"


USED = {"prompt_tokens": 2, "completion_tokens": 1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("[]", Refused("server", "the answer is not a JSON object", True)),
        ("x" * 61, Refused("server", f"the answer is not JSON: '{'x' * 60}'", True)),
        (f"<{KEY}>", Refused("server", "the answer is not JSON: '<[redacted]>'", True)),
        (
            {"error": {"message": "overloaded"}, "usage": USED},
            Refused("server", "the server returned an error as its answer: overloaded", True, usage=Usage(2, 1)),
        ),
        (
            {"error": {"message": "no", "type": "insufficient_quota"}, "usage": USED},
            Refused("quota", "the server returned an error as its answer: no", usage=Usage(2, 1)),
        ),
        *(
            (
                {"choices": choices, "usage": USED},
                Refused("server", "the answer has no choices", True, usage=Usage(2, 1)),
            )
            for choices in ([], None, {"0": {"message": {}}}, ["text"], [{"message": "text"}], [{}])
        ),
    ],
)
def test_invalid_responses_with_status_200(body: Any, expected: Refused) -> None:
    """The response is kept without the key, and so is its usage."""
    raw = body if isinstance(body, str) else json.dumps(body)
    expected.body, expected.answered = raw.replace(KEY, "[redacted]").encode(), True
    assert sent_to(Raw(200, raw)) == expected


@pytest.mark.parametrize(
    ("choice", "more", "expected"),
    [
        ({"message": {"content": "Yes."}, "finish_reason": "stop"}, {"model": "m-2"}, ("Yes.", "stop", "m-2", "")),
        ({"message": {"content": None}, "finish_reason": None}, {"model": None}, ("", "", "", "")),
        ({"message": {"refusal": f"No, {KEY}."}}, {}, ("", "", "", "No, [redacted].")),
        ({"message": {"content": "Yes.", "refusal": 7}}, {"error": None}, ("Yes.", "", "", "")),
    ],
)
def test_the_fields_of_a_reply(choice: dict[str, Any], more: dict[str, Any], expected: tuple[str, ...]) -> None:
    """Missing fields are empty."""
    body = {"choices": [choice, {"message": {"content": "another"}}], "usage": USED, **more}
    content, finish, served, refusal = expected
    kept = json.dumps(body).replace(KEY, "[redacted]").encode()
    assert sent_to(Raw(200, body)) == Reply(content, finish, Usage(2, 1), served, kept, refusal)


@pytest.mark.parametrize(("key", "shown"), [("abcde", "abcde"), ("abcdef", "[redacted]")])
def test_a_very_short_key_is_not_redacted(key: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local server accepts any key; removing a short one would garble messages."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    found = sent_to(error(500, f"the {key} tree"))
    assert isinstance(found, Refused)
    assert found.detail == f"HTTP 500: the {shown} tree"


def test_the_reason_of_a_failed_connection() -> None:
    """The name and the message, if any, of the underlying exception."""
    outer = ValueError("outer")
    assert _reason(outer) == "ValueError: outer"
    outer.__cause__ = OSError(f"inner \n {'x' * 200}")
    assert _reason(outer) == f"OSError: inner {'x' * 194}"
    assert _reason(TimeoutError()) == "TimeoutError"
