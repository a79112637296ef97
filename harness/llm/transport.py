"""One request to an OpenAI-compatible server: a reply, or a refusal whose kind is known."""

import asyncio
import email.utils
import json
import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import JudgeError
from harness.llm.outcome import FATAL, FailureKind
from harness.llm.prices import Usage

if TYPE_CHECKING:
    import openai

_LARGEST = 8_000_000
"""Bytes of an answer, unpacked; no label is as long."""

LONGEST_WAIT = 120.0
"""Seconds a server may ask to be left alone; beyond, the request counts as refused."""

_PARAMETERS = (
    "response_format",
    "max_completion_tokens",
    "reasoning_effort",
    "temperature",
    "seed",
    "store",
    "prompt_cache_options",
    "prompt_cache_key",
    "prompt_cache_breakpoint",
)


@dataclass(frozen=True)
class Reply:
    """An answer as the server gave it; `usage` is None where the server does not count, or cannot."""

    content: str
    finish: str
    usage: Usage | None
    served: str
    body: bytes
    refusal: str = ""


@dataclass
class Refused(Exception):  # noqa: N818 - what a server does, not what went wrong here
    """A request that brought no answer. `wait` is in seconds, where the server named a time; `body` is what it said."""

    kind: FailureKind
    detail: str
    again: bool = False
    wait: float | None = None
    parameter: str | None = None
    usage: Usage | None = None
    body: bytes = b""
    answered: bool = False

    @property
    def fatal(self) -> bool:
        return self.kind in FATAL


class Connection:
    """A client of one server. The key stays in here: whatever is told of a request has it taken out."""

    def __init__(self, server: str, model: str) -> None:
        import openai

        self._where = f"{model} at {server}"
        try:
            self._client = openai.AsyncOpenAI(
                base_url=server,
                max_retries=0,
                timeout=openai.Timeout(None, connect=10.0),
                # A redirect would carry the texts, and maybe the key, to a host nobody named.
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            )
        except openai.OpenAIError:
            raise JudgeError(
                f"model {self._where}: set OPENAI_API_KEY (any text will do for a local server that asks for none)"
            ) from None
        self._key = str(self._client.api_key)

    async def close(self) -> None:
        """Close the connections that are kept open."""
        await self._client.close()

    async def send(self, body: dict[str, Any], timeout: float) -> Reply:
        """Post one chat completion; raises Refused. Takes `timeout` seconds at most, however slowly bytes drip in."""
        import openai

        try:
            async with asyncio.timeout(timeout):
                return await self._post(body)
        except TimeoutError:
            raise Refused("timeout", f"no complete answer within {timeout:g} s", again=True) from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APITimeoutError:
            raise Refused("timeout", "the connection timed out", again=True) from None
        except openai.APIConnectionError as error:
            raise Refused("network", self.safe(_reason(error)), again=True) from None
        except Exception as error:
            # Whatever the HTTP library raises while a body is read; anything else is a bug of ours.
            if type(error).__module__.partition(".")[0] not in ("httpx2", "httpcore2", "ssl", "zlib"):
                raise
            raise Refused("network", self.safe(_reason(error)), again=True, answered=True) from None

    async def _post(self, body: dict[str, Any]) -> Reply:
        create = self._client.chat.completions.with_streaming_response.create
        # All goes in as `extra_body`: the SDK would walk through every message, at a millisecond or two a call.
        async with create(model=body["model"], messages=[], extra_body=body) as response:
            raw = bytearray()
            async for piece in response.iter_bytes():
                raw += piece
                if len(raw) > _LARGEST:
                    raise Refused("server", f"an answer of more than {_LARGEST // 1_000_000} MB", answered=True)
        return self._read(bytes(raw))

    def _read(self, raw: bytes) -> Reply:
        kept = self.safe(raw.decode("utf-8", "replace")).encode()
        try:
            told = json.loads(raw)
        except (ValueError, RecursionError):
            shown = self.safe(raw[:60].decode("utf-8", "replace"))
            raise Refused("server", f"the answer is no JSON: {shown!r}", again=True, body=kept, answered=True) from None
        if not isinstance(told, dict):
            raise Refused("server", "the answer is no object", again=True, body=kept, answered=True)
        usage = Usage.of(told.get("usage"))
        if told.get("error"):
            said = self.safe(_message(told["error"]))
            kind: FailureKind = "quota" if "insufficient_quota" in json.dumps(told["error"]) else "server"
            raise Refused(
                kind, f"an error in place of an answer: {said}", kind == "server", None, None, usage, kept, True
            )
        choices = told.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            raise Refused("server", "an answer without a choice", True, None, None, usage, kept, True)
        content, refusal = message.get("content"), message.get("refusal")
        return Reply(
            content if isinstance(content, str) else "",
            str(first.get("finish_reason") or ""),
            usage,
            str(told.get("model") or ""),
            kept,
            self.safe(refusal) if isinstance(refusal, str) else "",
        )

    def _refusal(self, error: "openai.APIStatusError") -> Refused:
        status, headers = error.status_code, error.response.headers
        inner = error.body if isinstance(error.body, dict) else {}
        code = f"{inner.get('code') or ''} {inner.get('type') or ''}"
        message = self.safe(_message(error.body if error.body is not None else error.message))
        detail = f"HTTP {status}: {message}"
        wait = retry_after(headers.get("retry-after-ms"), headers.get("retry-after"), time.time())
        body = detail.encode()
        if status in (401, 403):
            return Refused("auth", detail, body=body)
        if status == 404:
            return Refused("unknown_model", detail, body=body)
        if status == 429:
            if "insufficient_quota" in code or "billing" in code:
                return Refused("quota", detail, body=body)
            return Refused("rate_limit", detail, True, wait, body=body)
        if status == 413 or _too_long(code, message):
            return Refused("context_too_long", detail, body=body)
        if status == 408:
            return Refused("timeout", detail, True, wait, body=body)
        if "content_filter" in code:
            return Refused("content_filter", detail, body=body)
        if status in (400, 422):
            # Half of all servers name the parameter in words only.
            named = str(inner.get("param") or "")
            found = next((name for name in _PARAMETERS if named.startswith(name) or name in message), None)
            return Refused("bad_request", detail, parameter=found, body=body)
        if status < 400:
            return Refused(
                "server", f"HTTP {status}: the server redirects; give its new address as base_url", body=body
            )
        if status < 500 and status != 409:
            return Refused("bad_request", detail, body=body)
        again = headers.get("x-should-retry") != "false"
        return Refused("server", detail, again, wait, body=body)

    def safe(self, text: str) -> str:
        """The text without the key, and without anything that looks like one."""
        if len(self._key) > 5:
            text = text.replace(self._key, "[key]")
        return re.sub(r"\bsk-[A-Za-z0-9_\-*]{8,}", "[key]", text)


def retry_after(ms: str | None, after: str | None, now: float) -> float | None:
    """Seconds to wait, from the headers `retry-after-ms` and `retry-after` (seconds or a date); None for nonsense."""
    for value, scale in ((ms, 1000.0), (after, 1.0)):
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            date = email.utils.parsedate_tz(value)
            seconds = email.utils.mktime_tz(date) - now if date else math.nan
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _message(error: Any) -> str:
    told = error.get("message", error) if isinstance(error, dict) else error
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        told = told["message"]
    return " ".join(str(told).split())[:300]


def _reason(error: Exception) -> str:
    inner = error.__cause__ or error
    told = " ".join(str(inner).split())[:200]
    return f"{type(inner).__name__}: {told}" if told else type(inner).__name__


def _too_long(code: str, message: str) -> bool:
    words = message.lower()
    return "context_length" in code or (
        "context" in words and any(word in words for word in ("length", "window", "exceed", "too long", "too large"))
    )
