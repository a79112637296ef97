"""A server on 127.0.0.1 that speaks OpenAI's chat protocol over real sockets, and misbehaves as it is asked to."""

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

FENCE = re.compile(r"<<(?P<slot>\w+)(?::(?P<code>\w+))?>>\n(?P<text>.*?)\n<</(?P=slot)(?::(?P=code))?>>", re.DOTALL)


@dataclass
class Asked:
    """One request as a model would see it."""

    body: dict[str, Any]
    headers: dict[str, str]
    path: str = ""
    number: int = 0

    @property
    def user(self) -> str:
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content)

    @property
    def system(self) -> str:
        return self.body["messages"][0]["content"]

    @property
    def fenced(self) -> dict[str, str]:
        """The fenced texts by slot, but for what is asked about them."""
        return {slot: text for slot, text in self.given.items() if slot not in ("question", "reference", "title")}

    @property
    def given(self) -> dict[str, str]:
        """All fenced texts by name."""
        return {match["slot"]: match["text"] for match in FENCE.finditer(self.user)}

    @property
    def question(self) -> str:
        return self.given.get("question", "")

    @property
    def is_probe(self) -> bool:
        return "messages" in self.body and "violin" in self.user

    @property
    def slots(self) -> list[str]:
        """The slots the answer must have, from the schema."""
        schema = self.body.get("response_format", {}).get("json_schema", {})
        return list(schema["schema"]["properties"]) if schema else list(self.fenced)


@dataclass
class Raw:
    """A response to be written as it is: status, headers and body, or bytes at will; then how the connection ends."""

    status: int = 200
    body: bytes | str | dict[str, Any] = b""
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0.0
    hang: bool = False
    reset_after: int | None = None
    length: int | None = None


def grade_all(asked: Asked, grade: Callable[[str, str], int] = lambda question, text: 2) -> dict[str, Any]:
    """A precision judge's answer: a grade for each slot by question and text."""
    entry = asked.body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    with_why = any("why" in one.get("properties", {}) for one in entry.values()) or '"why"' in asked.user
    record = {}
    for slot in asked.slots:
        value: dict[str, Any] = {"why": "seen"} if with_why else {}
        record[slot] = {**value, "grade": grade(asked.question, asked.fenced.get(slot, ""))}
    return record


def completion(content: Any, asked: Asked, **changes: Any) -> dict[str, Any]:
    """A chat completion around an answer; usage counts a token per four bytes, as `Server.tokens` does."""
    text = content if isinstance(content, str) else json.dumps(content)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    prompt = len(json.dumps(asked.body["messages"], ensure_ascii=False).encode()) // 4
    usage = {"prompt_tokens": prompt, "completion_tokens": max(1, len(text) // 4)}
    made = {"id": "x", "object": "chat.completion", "model": asked.body["model"], "choices": [choice], "usage": usage}
    return {**made, **changes}


def reranked(asked: Asked) -> dict[str, Any]:
    """What a /rerank endpoint answers: a text is the better the more of the query's words it has, best first."""
    words = set(asked.body["query"].lower().split())
    shares = [len(words & set(text.lower().split())) / len(words) for text in asked.body["documents"]]
    rows = [{"index": at, "relevance_score": share} for at, share in enumerate(shares)]
    return {"results": sorted(rows, key=lambda row: -row["relevance_score"])}


def probe_answer(asked: Asked) -> dict[str, Any]:
    return {slot: {"grade": 3 if "100 degrees" in asked.fenced[slot] else 0} for slot in asked.slots}


Behaviour = Callable[[Asked], Any]
"""Gives a dict (the answer's content), a text (the content as it stands), a Raw, or a whole completion (`choices`)."""


class Server:
    """Runs in a thread. `behave` answers all but the probe, unless `probe` says otherwise; `asked` is what came in."""

    def __init__(self, behave: Behaviour = grade_all, *, rate: float | None = None) -> None:
        self.behave = behave
        self.probe: Behaviour = probe_answer
        self.asked: list[Asked] = []
        self.prompt_tokens = self.output_tokens = 0
        self.refused = 0
        self._rate, self._sent = rate, []  # type: ignore[var-annotated]
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def calls(self) -> list[Asked]:
        """What came in, without the probe."""
        return [asked for asked in self.asked if not asked.is_probe]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "Server":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                begin = await reader.readexactly(1)
                if not begin.isalpha():
                    return  # a TLS greeting, as a plain server would see it
                head = (begin + await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.strip().split("\r\n")
                headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(json.loads(body), headers, first.split()[1], len(self.asked))
                self.asked.append(asked)
                if not await self._answer(self._response(asked), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _response(self, asked: Asked) -> Raw:
        now = self._loop.time()
        if self._rate and not asked.is_probe:
            self._sent = [at for at in self._sent if at > now - 1]
            if len(self._sent) >= self._rate:
                self.refused += 1
                wait = self._sent[0] + 1 - now
                return Raw(429, {"error": {"message": "slow down"}}, {"Retry-After": f"{wait:.3f}"})
            self._sent.append(now)
        output = (self.probe if asked.is_probe else self.behave)(asked)
        if isinstance(output, Raw):
            return output
        if "messages" not in asked.body:
            return Raw(200, output)
        made = output if isinstance(output, dict) and "choices" in output else completion(output, asked)
        usage = made.get("usage")
        if isinstance(usage, dict) and all(type(count) is int for count in usage.values()):
            self.prompt_tokens += usage["prompt_tokens"]
            self.output_tokens += usage["completion_tokens"]
        return Raw(200, made)

    @staticmethod
    async def _answer(raw: Raw, writer: asyncio.StreamWriter) -> bool:
        """Write a response; gives whether the connection stays open."""
        if raw.hang:
            await asyncio.sleep(3600)
        body = raw.body
        content = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(raw.length or len(content)), **raw.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {raw.status} Told\r\n{head}\r\n".encode())
        if raw.reset_after is not None:
            writer.write(content[: raw.reset_after])
            await writer.drain()
            writer.transport.abort()
            return False
        if raw.drip:
            for at in range(len(content)):
                writer.write(content[at : at + 1])
                await writer.drain()
                await asyncio.sleep(raw.drip)
        else:
            writer.write(content)
        await writer.drain()
        return raw.length is None


@contextlib.contextmanager
def default_server(monkeypatch: "pytest.MonkeyPatch", behave: Behaviour) -> Iterator[Server]:
    """Run a server and make it the default of all components that call a model."""
    with Server(behave) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running
