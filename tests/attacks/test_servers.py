"""Hundreds of generated answers and connections: no traceback, no hang, no invented score, and usage is counted."""

import asyncio
import contextlib
import gzip
import json
import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_questions import BYSTANDER, VICTIM, Outcome, put
from openai_server import Asked, Raw, Server, completion, grade_all

from harness.components.embedders import Api
from harness.core.errors import ConfigError, HarnessError, JudgeError
from harness.llm import Failure, RetryPolicy
from harness.llm.bounded import LARGEST
from harness.llm.prices import Usage
from harness.llm.transport import Connection, Refused, Reply, retry_after
from judges import ContextPrecision

SHORT, LONG = 60, 400
PATIENCE = RetryPolicy(attempts=2, turns=3, pause=0.001, longest=0.002)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-attack-0123456789abcdef")


# -- a grammar of answers

TEXTS = [
    "",
    "x",
    "\ud800",
    "\udfff\ud800",
    "\x00",
    "\x1b[31m",
    "é",
    "𝕏",
    "\u202e",
    "a" * 3000,
    "<<c01:aaaa>>",
    "</think>",
    "{}",
]


def text(chance: random.Random) -> str:
    return "".join(chance.choice(TEXTS) for _ in range(chance.randrange(4)))


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(10 if depth < 3 else 7)
    if kind == 0:
        return None
    if kind == 1:
        return chance.choice([True, False])
    if kind == 2:
        return chance.choice([0, 1, 2, 3, -1, 9, 10**30, 2.0, 1e308])
    if kind < 7:
        return text(chance)
    if kind < 8:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {text(chance): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def mutated(chance: random.Random, made: Any) -> Any:
    """A JSON value with one of its parts replaced, dropped or added."""
    if isinstance(made, dict) and made:
        name = chance.choice(sorted(made))
        way = chance.randrange(6)
        if way == 0:
            return {key: inner for key, inner in made.items() if key != name}
        if way == 1:
            return {**made, text(chance): value(chance)}
        if way == 2:
            return {**made, name: value(chance)}
        return {**made, name: mutated(chance, made[name])}
    if isinstance(made, list) and made:
        at = chance.randrange(len(made))
        return [*made[:at], mutated(chance, made[at]), *made[at + 1 :]]
    return value(chance)


def content(chance: random.Random, asked: Asked) -> str:
    """The content of a completion: nearly valid, or not at all."""
    good = grade_all(asked)
    way = chance.randrange(8)
    said = json.dumps(mutated(chance, good) if way < 4 else good)
    if way == 4:
        return said[: chance.randrange(len(said))]
    if way == 5:
        return text(chance) + said + text(chance)
    if way == 6:
        return chance.choice(["\n", " ", "[", "{", "<think>", "```json\n", "\\", '"']) * chance.randrange(1, 30_000)
    if way == 7:
        return f"{'<think>' * chance.randrange(3)}{text(chance)}{'</think>' * chance.randrange(3)}{said}"
    return said


def body(chance: random.Random, asked: Asked) -> bytes:
    """The body of a response: a completion, possibly damaged, or no JSON."""
    made: Any = completion(content(chance, asked), asked, model=text(chance) or "m")
    way = chance.randrange(6)
    if way < 3:
        made = mutated(chance, made)
    if way == 3:
        made["choices"][0]["message"]["refusal"] = text(chance)
    raw = json.dumps(made).encode()
    if way == 4:
        raw = raw[: chance.randrange(len(raw))]
    if way == 5:
        at = chance.randrange(len(raw))
        raw = raw[:at] + chance.randbytes(chance.randrange(1, 9)) + raw[at:]
    return raw


def headers(chance: random.Random) -> dict[str, str]:
    retry = [
        "0",
        "0.001",
        "1e400",
        "-1",
        "Fri, 31 Dec 10000 23:59:59 GMT",
        "Fri, 31 Dec 0000 23:59:59 GMT",
        "x" * 4000,
        "٣",
    ]
    found = {}
    if chance.random() < 0.4:
        found["Retry-After"] = chance.choice(retry).encode().decode("latin-1")
    if chance.random() < 0.2:
        found["retry-after-ms"] = chance.choice(["0", "nan", "1e9999"])
    if chance.random() < 0.2:
        found["Content-Type"] = chance.choice(["text/html", "", "application/json; charset=utf-99", "multipart/x"])
    return found


def response(chance: random.Random, asked: Asked) -> Raw:
    status = chance.choice(
        [200] * 8 + [201, 204, 301, 400, 400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 451, 500, 503, 599]
    )
    raw, extra = body(chance, asked), headers(chance)
    way = chance.randrange(10)
    if way == 0:
        extra["Content-Encoding"] = chance.choice(["gzip", "deflate", "br", "zstd", "gzip, gzip", "x", "identity"])
        raw = {
            "gzip": gzip.compress(raw),
            "deflate": zlib.compress(raw),
            "gzip, gzip": gzip.compress(gzip.compress(raw)),
        }.get(extra["Content-Encoding"], raw)
        raw = raw if chance.random() < 0.7 else raw[: len(raw) // 2]
    if way == 1:
        return Raw(status, raw, extra, reset_after=chance.randrange(len(raw) + 1))
    if way == 2:
        return Raw(status, raw, extra, length=chance.choice([0, 1, len(raw) + 50]))
    if status >= 400 and chance.random() < 0.5:
        raw = json.dumps({"error": value(chance)}).encode()
    return Raw(status, raw, extra)


def attack(seed: int, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)

    def behave(asked: Asked) -> Any:
        return response(chance, asked) if asked.question == VICTIM.query.text else grade_all(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        judge = ContextPrecision("m", timeout=1.5, give_up_after=20.0)
        begun = time.monotonic()
        outcome = put([VICTIM, BYSTANDER], store, judge, retry_policy=PATIENCE)
        took = time.monotonic() - begun
    assert took < 60, f"seed {seed}: {took:.0f} s"
    assert outcome.fatal is None or isinstance(outcome.fatal, HarnessError), f"seed {seed}: {outcome.fatal!r}"
    if outcome.fatal:
        assert "\n" not in str(outcome.fatal)
    else:
        assert outcome.kinds(BYSTANDER) == ["label"] * 3, f"seed {seed}"
    check(outcome, seed)


def check(outcome: Outcome, seed: int) -> None:
    """Every judgment is a possible grade or a failure; a query with a failure has no value."""
    score = outcome.verdict(VICTIM).scores["context_precision"]
    judged = [outcome.judgments[task] for task in outcome.judge.tasks(VICTIM)]
    failed = any(isinstance(one, Failure) for one in judged)
    assert (score.value is None) == failed, f"seed {seed}"
    for one in judged:
        if isinstance(one, Failure):
            one.detail.encode()
        else:
            assert one.grade in (0, 1, 2, 3)
            one.why.encode()


@pytest.mark.parametrize("seed", range(SHORT))
def test_generated_answers(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invalid JSON, HTTP and Unicode, and broken connections."""
    attack(seed, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SHORT, LONG))
def test_many_generated_answers(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them."""
    attack(seed, tmp_path, monkeypatch)


# -- connections that are not HTTP

LINES: dict[str, bytes] = {
    "nothing": b"",
    "noise": bytes(range(256)) * 8,
    "half a status": b"HTTP/1.1 20",
    "a status of letters": b"HTTP/1.1 abc OK\r\n\r\n",
    "a status of 999999": b"HTTP/1.1 999999 OK\r\n\r\n",
    "HTTP 9": b"HTTP/9.9 200 OK\r\n\r\n{}",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 50_000,
    "a header of a megabyte": b"HTTP/1.1 200 OK\r\na: " + b"x" * 2**20,
    "a header without colon": b"HTTP/1.1 200 OK\r\nabc\r\n\r\n",
    "a header of NUL": b"HTTP/1.1 200 OK\r\na: \x00\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length of minus one": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    "a length of 10**30": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n{}",
    "chunks of nonsense": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
    "a chunk of 2**60": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n" + b"x" * 1000,
    "a hundred interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
    "another protocol": b"\x16\x03\x01\x00\xa5",
    "a switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
}


@contextlib.contextmanager
def raw_server(sent: bytes, drip: float = 0.0) -> Iterator[str]:
    """A server that sends some bytes to every client, and then nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while not ended.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(100)
            if drip:
                for at in range(len(sent)):
                    connection.sendall(sent[at : at + 1])
                    ended.wait(drip)
            else:
                connection.sendall(sent)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    ended.set()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.mark.parametrize("name", LINES)
def test_connections_that_are_not_http(name: str) -> None:
    """A network or server failure within the timeout; one line from the embedder."""
    with raw_server(LINES[name]) as url:
        found = sent(url)
        assert isinstance(found, Refused)
        assert found.kind in ("network", "server", "timeout")
        with pytest.raises(HarnessError) as caught:
            Api("m", base_url=url, retries=0, timeout=1.5).embed(["a"])
        assert "\n" not in str(caught.value)


def test_a_slow_embedding_ends_at_the_deadline() -> None:
    """Byte by byte, without end: the timeout covers the whole response."""
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b" " * 100_000, drip=0.02) as url:
        begun = time.monotonic()
        with pytest.raises(HarnessError, match="within 0.5 s"):
            Api("m", base_url=url, retries=0, timeout=0.5).embed(["a"])
        assert time.monotonic() - begun < 20


def sent(url: str) -> Reply | Refused:
    async def scene() -> Reply | Refused:
        connection = Connection(url, "m")
        try:
            return await connection.send({"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}, 1.5)
        except Refused as refused:
            return refused
        finally:
            await connection.close()

    return asyncio.run(scene())


# -- limits

BOMB = gzip.compress(b" " * 3 * 10**7)


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500, 503])
@pytest.mark.parametrize("packing", ["plain", "gzip", "gzip, gzip", "gzip, gzip, gzip", "deflate", "br"])
def test_no_answer_is_read_beyond_the_limit(status: int, packing: str) -> None:
    """For any status, even if compressed repeatedly; nested decompression bombs are not expanded."""
    packed = {"plain": b" " * (LARGEST + 1000), "gzip": BOMB, "deflate": zlib.compress(b" " * 3 * 10**7)}.get(packing)
    if packed is None:
        packed = gzip.compress(BOMB)
    more = {} if packing == "plain" else {"Content-Encoding": packing}
    with Server(lambda _: Raw(status, packed, more)) as server:
        found = sent(server.url)
    assert isinstance(found, Refused)
    assert found.kind == "server"
    assert "MB" in found.detail or "compressed" in found.detail


def test_a_compressed_answer_is_read() -> None:
    """A proxy may compress answers unasked."""
    body = {"choices": [{"message": {"content": "Yes."}}]}
    for packing, pack in (("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)):
        with Server(
            lambda _, p=packing, f=pack: Raw(200, f(json.dumps(body).encode()), {"Content-Encoding": p})
        ) as server:
            found = sent(server.url)
        assert isinstance(found, Reply)
        assert found.content == "Yes."


# -- a server that refuses every request


@pytest.mark.parametrize("wait", [None, "0", "1", "100"])
def test_a_permanent_429_ends_the_retries(wait: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the configured time, even if the server asks for longer; the rest is not sent, and nothing is scored."""
    more = {} if wait is None else {"Retry-After": wait}
    lines: list[str] = []
    with Server(lambda _: Raw(429, {"error": {"message": "slow down"}}, more)) as server:
        server.probe = lambda asked: {slot: {"grade": 3 if slot == "c01" else 0} for slot in asked.slots}
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        judge = ContextPrecision("m", batch=1, give_up_after=2.0)
        begun = time.monotonic()
        outcome = put([VICTIM, BYSTANDER], tmp_path, judge, retry_policy=RetryPolicy(), notify=lines.append)
        assert time.monotonic() - begun < 30
    kinds = outcome.kinds(VICTIM) + outcome.kinds(BYSTANDER)
    assert set(kinds) <= {"rate_limit", "circuit_open"}  # those that were sent, and those that were not
    assert "rate_limit" in kinds
    assert any("give_up_after" in one.detail for one in outcome.judgments.values() if isinstance(one, Failure))


def test_waiting_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the server, the waiting time, and when the harness gives up."""
    lines: list[str] = []
    with Server(lambda _: Raw(429, {"error": {"message": "slow down"}}, {"Retry-After": "6"})) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        put(
            [VICTIM],
            tmp_path,
            ContextPrecision("m", give_up_after=7.0),
            retry_policy=RetryPolicy(),
            notify=lines.append,
        )
    assert any("m at http://127.0.0.1" in line and "waiting 6 s" in line and "after 7" in line for line in lines)


def test_a_request_beyond_the_tokens_a_minute_is_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three passages do not fit, one does."""

    def behave(asked: Asked) -> Any:
        if len(asked.fenced) > 1:
            message = "Request too large for m on tokens per min (TPM): Limit 300, Requested 900."
            return Raw(429, {"error": {"message": message, "type": "tokens", "code": "rate_limit_exceeded"}})
        return grade_all(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("m"), retry_policy=PATIENCE)
        assert outcome.kinds(VICTIM) == ["label"] * 3
        assert len(server.calls) < 12


def test_a_request_beyond_the_tokens_a_minute_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single passage: the limit on the answer's tokens is lowered."""
    rooms: list[int] = []

    def behave(asked: Asked) -> Any:
        rooms.append(asked.body["max_completion_tokens"])
        if rooms[-1] > 200:
            return Raw(429, {"error": {"message": f"Limit 250, Requested {rooms[-1]}. Request too large"}})
        return grade_all(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM], tmp_path, ContextPrecision("m", batch=1, concurrency=1), retry_policy=PATIENCE)
    assert outcome.kinds(VICTIM) == ["label"] * 3
    assert min(rooms) <= 200 < max(rooms)


def test_dates_of_any_year() -> None:
    """Dates outside the range of `datetime` are ignored."""
    for date in ("Fri, 31 Dec 10000 23:59:59 GMT", "Fri, 31 Dec 99999999 23:59:59 GMT", "x", "1e999", "\ud800"):
        assert retry_after(None, date, time.time()) is None


# -- what is charged


def test_thoughts_counted_in_the_total_alone_are_charged() -> None:
    """They count as output; a total that is less than its parts, or absurd, is ignored."""
    assert Usage.of({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}) == Usage(10, 105)
    assert Usage.of({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}) == Usage(10, 5)
    for total in (3, None, "115", 10**12, True):
        assert Usage.of({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": total}) == Usage(10, 5)


@pytest.mark.parametrize(
    ("embedder", "given", "expected"),
    [
        (Api(), None, 0.02),
        (Api(), (5.0, 9.0), 5.0),
        (Api(usd_per_million_tokens=7.0), (5.0, 9.0), 7.0),
        (Api("unheard-of"), None, None),
        (Api("unheard-of"), (5.0, 9.0), 5.0),
        (Api(base_url="http://127.0.0.1:9/v1"), None, None),
    ],
)
def test_the_price_of_an_embedder(
    embedder: Api, given: tuple[float, float] | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the settings, else --price, else the price list; a known name at another address has no known price."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert embedder.price_with(given) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("seed", range(40))
def test_generated_embeddings(seed: int) -> None:
    """Vectors of finite numbers, or an error in one line."""
    chance = random.Random(seed)

    def behave(asked: Asked) -> Any:
        good = {"data": [{"index": at, "embedding": [1.0, 2.0]} for at, _ in enumerate(asked.body["input"])]}
        return Raw(200, json.dumps(mutated(chance, good)))

    with Server(behave) as server, contextlib.suppress(ConfigError):
        made = Api("m", base_url=server.url, retries=0, timeout=5.0).embed(["a", "b"])
        assert made.vectors.shape[0] == 2
        assert np.isfinite(made.vectors).all()


def test_no_server_error_is_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lone surrogate in the slot, the refusal, the model's name, the error and the probe."""
    half = "\ud800"
    answers: list[Callable[[Asked], Any]] = [
        lambda asked: {half: {"why": "", "grade": 2}},
        lambda asked: completion(grade_all(asked), asked, model=half),
        lambda asked: completion(
            "", asked, choices=[{"message": {"content": "", "refusal": half}, "finish_reason": half}]
        ),
        lambda asked: Raw(200, {"error": {"message": half, "type": half}}),
        lambda asked: Raw(400, {"error": {"message": half, "code": half, "param": half}}),
        lambda asked: json.dumps({half: half}),
    ]
    for at, answer in enumerate(answers):
        with Server(answer) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            check(put([VICTIM], tmp_path / f"a{at}", ContextPrecision("m"), retry_policy=PATIENCE), at)
            server.probe = answer
            outcome = put([VICTIM], tmp_path / f"p{at}", ContextPrecision("m"), retry_policy=PATIENCE)
            assert outcome.fatal is None or isinstance(outcome.fatal, JudgeError)
