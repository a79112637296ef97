"""Requests: server addresses, bodies, token limits; answer schemas and the parsing of answers."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from harness.components.verdict import Finding, Score, average_precision, fraction_relevant
from harness.llm import AnswerSchema, Choice, Completion, Failure, Label, ListOf, Prompt, Task, Text, nonce
from harness.llm.answer_schema import Reading
from harness.llm.blocking import blocking
from harness.llm.request import Capabilities, output_limit, prompt_bytes, request_body, sampling
from judges import ContextPrecision

OPENAI = ContextPrecision("m", base_url="https://api.openai.com/v1")
LOCAL = ContextPrecision("m", base_url="http://localhost:11434/v1")
FORM = AnswerSchema((("grade", Choice((0, 1))),))
PROMPT = Prompt("Grade.", "It rains.", FORM, {"c01": Task("q")}, output=55)
OBJECT = {"type": "object", "properties": {"grade": {"type": "integer", "enum": [0, 1]}}}
SCHEMA = {
    "type": "object",
    "properties": {"c01": {**OBJECT, "required": ["grade"], "additionalProperties": False}},
    "required": ["c01"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "server", "endpoint"),
    [
        ("http://user:secret@host:81/v1/?x=1#y", "http://user:secret@host:81/v1/?x=1#y", "http://host:81/v1"),
        ("https://host/v1/", "https://host/v1", "https://host/v1"),
        (None, "http://named/v1", "http://named/v1"),
    ],
)
def test_the_endpoint_of_a_server(
    given: str | None, server: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without credentials, query and fragment; taken from the environment if the settings name none."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://named/v1/")
    judge = ContextPrecision("m", base_url=given)
    assert (judge.server, judge.endpoint) == (server, endpoint)
    assert ("server" in judge.facts()) == (given is None)


def test_openai_is_the_default_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then not part of the identity."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    judge = ContextPrecision("m")
    assert judge.endpoint == OPENAI.endpoint == "https://api.openai.com/v1"
    assert "server" not in judge.facts()


def test_invalid_settings() -> None:
    """A blank model, and a password in an address, which would be logged."""
    assert "model is empty" in str(ContextPrecision(" ").problem())
    assert "a user, a password or a key" in str(ContextPrecision("m", base_url="http://u:p@host/v1").problem())
    assert LOCAL.problem() is None


def test_the_body_of_a_request_in_each_mode() -> None:
    """The schema is sent in `response_format` if the server supports it, else in the message."""
    strict = request_body(LOCAL, PROMPT, Capabilities(), 420)
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    messages = [{"role": "system", "content": "Grade."}, {"role": "user", "content": "It rains."}]
    assert strict == {"model": "m", "messages": messages, "max_completion_tokens": 420, "response_format": schema}
    loose = request_body(LOCAL, PROMPT, Capabilities("json_object", "max_tokens"), 420)
    assert loose["response_format"] == {"type": "json_object"}
    assert (loose["max_tokens"], "max_completion_tokens" in loose) == (420, False)
    plain = request_body(LOCAL, PROMPT, Capabilities("plain"), 420)
    assert "response_format" not in plain
    for body in (loose, plain):
        user = body["messages"][1]["content"]
        assert user.startswith("It rains.\n\nAnswer with one JSON object")
        assert json.loads(user.splitlines()[-1]) == SCHEMA


def test_openai_is_told_to_store_nothing() -> None:
    """And to cache only shared documents, as long as it supports these options; other servers do not get them."""
    record = {"store": False, "prompt_cache_options": {"mode": "explicit"}}
    assert request_body(OPENAI, PROMPT, Capabilities(), 9).items() >= record.items()
    left = request_body(OPENAI, PROMPT, Capabilities(without=("store",)), 9)
    assert ("store" in left, "prompt_cache_options" in left) == (False, True)
    shared = PROMPT._replace(document="A long text.")
    head = {"type": "text", "text": "A long text.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    cached = request_body(OPENAI, shared, Capabilities(), 9)["messages"][1]["content"]
    assert cached == [head, {"type": "text", "text": "It rains."}]
    for prompter, capabilities in ((OPENAI, Capabilities(without=("prompt_cache_options",))), (LOCAL, Capabilities())):
        body = request_body(prompter, shared, capabilities, 9)
        assert body["messages"][1]["content"] == "A long text.\n\nIt rains."
        assert "prompt_cache_options" not in body


def test_sampling_settings_are_sent_if_chosen() -> None:
    """Zero counts as chosen."""
    judge = replace(LOCAL, temperature=0.0, seed=0, reasoning_effort="low")
    chosen = {"temperature": 0.0, "seed": 0, "reasoning_effort": "low"}
    assert sampling(judge) == chosen
    assert request_body(judge, PROMPT, Capabilities(), 9).items() >= chosen.items()
    assert sampling(LOCAL) == {}


def test_capabilities_after_refused_parameters() -> None:
    """The next looser mode, the other name of the token limit, fewer options; finally None."""
    asked = Capabilities()
    for mode in ("json_object", "plain"):
        asked = asked.refused("response_format") or pytest.fail("no other mode")
        assert asked == Capabilities(mode)
    assert asked.refused("response_format") is None
    asked = Capabilities().refused("max_completion_tokens") or pytest.fail("no other limit")
    assert asked == Capabilities(limit="max_tokens")
    assert asked.refused("max_completion_tokens") is None
    assert asked.refused("max_tokens") is None
    assert Capabilities().refused("store") == Capabilities(without=("store",))
    without = Capabilities(without=("store",)).refused("prompt_cache_breakpoint")
    assert without == Capabilities(without=("store", "prompt_cache_options"))
    for parameter in ("store", "prompt_cache_options", "prompt_cache_breakpoint", "temperature", None):
        assert without.refused(parameter) is None
    assert Capabilities.of(json.loads(json.dumps(without.plain()))) == without


@pytest.mark.parametrize(
    ("effort", "stretch", "limit"),
    [
        (None, 1, 420),
        (None, 4, 1680),
        (None, 64, 8192),
        ("none", 1, 420),
        ("minimal", 1, 920),
        ("low", 1, 2420),
        ("medium", 1, 8420),
        ("high", 64, 24192),
    ],
)
def test_the_token_limit_of_an_answer(effort: Any, stretch: int, limit: int) -> None:
    """Four times the 55 expected tokens plus 200, times the stretch, at most 8192; reasoning tokens are added."""
    assert output_limit(replace(LOCAL, reasoning_effort=effort), PROMPT, stretch) == limit


def test_the_size_of_a_prompt() -> None:
    """Its bytes, those of its schema, and 256 for framing."""
    prompt = Prompt("ab", "é", FORM, {"c01": Task("q")}, document="abc")
    assert prompt_bytes(prompt) == 2 + 2 + 3 + len(json.dumps(SCHEMA)) + 256
    assert prompt_bytes(prompt._replace(user="\ud800")) == prompt_bytes(prompt) - 1


def test_schema_fields() -> None:
    """Their JSON Schema, accepted values, and errors for other values."""
    assert Choice(("none", "full")).schema() == {"type": "string", "enum": ["none", "full"]}
    assert ListOf(Text(3)).schema() == {"type": "array", "items": {"type": "string"}}
    assert Text(3).read("abcd") == "abc"
    assert Text(3).read("a\ud800") == "a?"
    assert ListOf(Text(3), 2).read(["abcd", "b"]) == ("abc", "b")
    for field, value, message in (
        (Choice((0, 1)), 2, "2 is not one of 0, 1"),
        (Choice((0, 1)), True, "true is not one of 0, 1"),
        (Text(3), 7, "7 is not a string"),
        (ListOf(Text(3), 2), ["a", "b", "c"], "expected a list of at most 2 items"),
        (ListOf(Text(3), 2), "ab", "expected a list of at most 2 items"),
        (ListOf(Text(3), 2), ["a", 7], "7 is not a string"),
    ):
        with pytest.raises(ValueError, match=message):
            field.read(value)


def test_errors_in_an_answer() -> None:
    """Reported per slot; a duplicate key is named."""
    schema = AnswerSchema((("grade", Choice((0, 1))), ("why", Text(9))))
    good = {"grade": 1, "why": "seen"}
    record = {"c01": good, "c02": {"grade": 7, "why": ""}, "c03": {"grade": 1}}
    assert schema.read(json.dumps(record), ["c01", "c02", "c03", "c04"]) == Reading(
        {"c01": good},
        {
            "c02": Failure("schema", "c02: grade: 7 is not one of 0, 1"),
            "c03": Failure("schema", "c03: expected an object with grade, why"),
            "c04": Failure("missing_label", "no entry for c04"),
        },
    )
    twice = Failure("schema", "the key 'b' occurs twice")
    assert schema.read('{"a": 1, "b": 2, "b": 3}', ["a"]).bad == {"a": twice}
    assert schema.read("[]", ["a"]).bad == {"a": Failure("schema", "expected an object, got list")}
    assert schema.read("", ["a"]).bad == {"a": Failure("invalid_json", "the answer is empty")}
    assert schema.read("no", ["a"]).bad == {"a": Failure("invalid_json", "not JSON: 'no'")}
    unknown = Failure("extra_label", "unexpected entry for x, y")
    assert schema.read('{"y": 1, "a": 1, "x": 1}', ["a"]).bad == {"a": unknown}


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ('```\n{"a": {"grade": 1}}\n```', True),
        ('```json {"a": {"grade": 1}}```', False),
        ('```json\n{"a": {"grade": 1}}\n``` Done.', False),
        ('<think>one</think>two</think>{"a": {"grade": 1}}', False),
        ('<think>one <think>two</think>{"a": {"grade": 1}}', False),
        ('{"a": {"grade": 1}}</think>', False),
    ],
)
def test_what_may_surround_an_answer(content: str, read: bool) -> None:
    """One block of reasoning before it and one code fence around it."""
    assert bool(FORM.read(content, ["a"]).entries) == read


def test_a_nonce_grows_until_no_text_contains_it() -> None:
    """The text contains every code of four digits, but not the one of eight."""
    text = " ".join(f"{number:04x}" for number in range(16**4))
    code = nonce(["a", text])
    assert len(code) == 8
    assert code not in text
    assert len(nonce(["a", "b"])) == 4


def test_the_text_of_a_completion_is_its_first() -> None:
    """Of several texts."""
    assert Completion(("one", "two")).text == "one"


def test_scores_and_their_bounds() -> None:
    """Two of four relevant and one unknown: 1/2 to 3/4; a mean over repetitions needs all values."""
    known = fraction_relevant([True, True, None, False], 4)
    assert known == Score(None, 0.5, 0.75)
    assert fraction_relevant([True, False], 4) == Score.exactly(0.25)
    assert Score.mean([Score.exactly(1.0), known]) == Score(None, 0.75, 0.875)
    assert Score.mean([Score.exactly(1.0), Score.exactly(0.5)]) == Score.exactly(0.75)
    assert average_precision([False, True]) == Score.exactly(0.5)
    assert average_precision([None]) == Score(None, 0.0, 1.0)


def test_failures_as_text_and_among_judgments() -> None:
    """The kind, and the details if there are any."""
    failure = Failure("timeout", "slow")
    assert (str(failure), str(Failure("timeout"))) == ("timeout: slow", "timeout")
    assert Finding(1, "", (Label(1), failure)).failures == [failure]


def test_an_error_in_another_thread_is_raised() -> None:
    """Also from inside a running event loop."""

    async def broken() -> Label:
        raise ValueError("broken")

    async def notebook() -> Label:
        return blocking(broken())

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(notebook())
