"""The first question to a server: what it understands, and whether it grades the right way round."""

from pathlib import Path
from typing import Any

import pytest
from judged_questions import BYSTANDER, VICTIM, case, put
from llm_calls import MANY
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.llm import (
    AnswerCache,
    BatchRunner,
    Caller,
    Failure,
    stored,
)
from judges import ContextPrecision


def test_a_failed_probe_does_not_count_as_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server recovers but grades the wrong way round, that is detected; if it stays down, no call is sent."""
    answers: list[Asked] = []

    def backwards(asked: Asked) -> Any:
        answers.append(asked)
        if len(answers) <= 3:  # as many attempts as one call makes
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


REFUSALS = {
    "response_format": ("json_schema is not supported", "json_object"),
    "response_format.type": ("unknown response_format", "json_object"),
}


@pytest.mark.parametrize("parameter", REFUSALS)
def test_a_server_without_schemas(parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses json_schema once; from then on it gets json_object, also in the next launch."""

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
    """It answers in prose unless the format is in the prompt: the probe detects this."""

    def behave(asked: Asked) -> Any:
        if "response_format" in asked.body:
            return "I think the first one is best."
        answers = {slot: {"grade": 3 if "100" in text else 0} for slot, text in asked.fenced.items()}
        return answers if asked.is_probe else grade_all(asked)

    with Server(behave) as server:
        server.probe = behave
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3


def test_a_server_that_supports_only_max_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets that parameter from then on."""

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


def test_a_refused_sampling_setting_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not dropped silently, since the user chose it."""

    def behave(asked: Asked) -> Any:
        return Raw(400, {"error": {"message": "only the default is supported", "param": "temperature"}})

    with Server() as server:
        server.probe = behave
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("m", temperature=0.5))
    assert "does not accept temperature=0.5; remove it" in str(outcome.fatal)


def test_a_reasoning_model_gets_more_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncated at the first limit, complete at four times as many tokens."""

    def behave(asked: Asked) -> Any:
        made = completion(grade_all(asked), asked)
        if asked.body["max_completion_tokens"] < 1500:
            made["choices"][0] = {"message": {"content": ""}, "finish_reason": "length"}
        return made

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3
        assert len(server.calls) == 2


def test_a_model_that_never_follows_the_format_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one probe in each of the three modes."""
    with Server() as server:
        server.probe = lambda _: "The first one."
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path)
        assert "does not answer in the requested format: invalid_json" in str(outcome.fatal)
        kinds = [asked.body.get("response_format", {}).get("type") for asked in server.asked]
        assert kinds == ["json_schema", "json_object", None]


def test_calls_after_failed_probes_fail_like_the_last_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three probes, each refused with another status; no fourth one is sent."""
    statuses = [500, 502, 503]
    with Server() as server:
        server.probe = lambda _: Raw(statuses.pop(0), b"", {"x-should-retry": "false"})
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([case("Why?", ["1", "2", "3", "4", "5"])], tmp_path, ContextPrecision("m", batch=1))
        assert len(server.asked) == 3
    found = [one.detail[:8] for one in outcome.judgments.values() if isinstance(one, Failure)]
    assert found == ["HTTP 500", "HTTP 502", "HTTP 503", "HTTP 503", "HTTP 503"]


def test_no_probe_is_sent_after_a_stop(tmp_path: Path) -> None:
    """The calls that waited for the probe are cancelled."""
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


def test_a_refused_mode_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain mode one invalid answer is tolerated."""
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
def test_any_grades_in_the_right_order_pass_the_probe(
    answer: int, beside: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may be strict or lenient."""
    with Server() as server:
        server.probe = lambda _: {"c01": {"grade": answer}, "c02": {"grade": beside}}
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert put([VICTIM], tmp_path).kinds(VICTIM) == ["label"] * 3


def test_the_probe_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per server and model; its result is stored for the next launch."""
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for cases in (MANY[:3], MANY[3:6]):
            put(cases, tmp_path, ContextPrecision("m"))
        assert sum(asked.is_probe for asked in server.asked) == 1
        found = AnswerCache(tmp_path / "answers.sqlite").capabilities(server.url, "m")
        assert found == {"mode": "json_schema", "limit": "max_completion_tokens", "without": []}
