"""Sends one request to an OpenAI-compatible server; the result is a reply or a classified refusal."""

import asyncio
import contextlib
import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.core.characters import visible, well_formed, well_formed_json
from harness.core.errors import JudgeError
from harness.core.secrecy import REDACTED, api_key, bare_address, redact
from harness.llm.answers import FATAL, FailureKind
from harness.llm.prices import Usage

if TYPE_CHECKING:
    import openai

KEY = "OPENAI_API_KEY"
"""The default environment variable for the API key."""

LONGEST_WAIT = 120.0
"""Maximum seconds to wait if a server asks for it; if it asks for more, the request fails."""

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
    """The response of a server to a chat completion.

    `finish` is the finish reason, `served` the model name that the server reported, `body` the raw response without
    secrets, `refusal` the model's refusal if it declined. `usage` is None if missing or implausible.
    """

    content: str
    finish: str
    usage: Usage | None
    served: str
    body: bytes
    refusal: str = ""


@dataclass
class Refused(Exception):  # noqa: N818 - named after what the server did
    """A request without a usable answer.

    `again` says whether a retry may succeed, `wait` after how many seconds, if the server named a time. `parameter` is
    the request parameter that the server refused. `body` is the response without secrets; `answered` says whether a
    response had begun, so that the request may have been charged.
    """

    kind: FailureKind
    detail: str
    again: bool = False
    wait: float | None = None
    parameter: str | None = None
    usage: Usage | None = None
    body: bytes = b""
    answered: bool = False
    shrinks: bool = False
    """Whether a smaller request may be accepted: this one alone exceeds the limit of tokens per minute."""

    @property
    def fatal(self) -> bool:
        """Whether all further requests would fail too."""
        return self.kind in FATAL


class Connection:
    """A client of one server. The API key is removed from everything that is stored or shown.

    `variable` is the environment variable with the key, `largest` the limit of a response in bytes. Raises JudgeError
    if no key is set and ConfigError if the key is unusable.
    """

    def __init__(self, server: str, model: str, *, variable: str = KEY, largest: int | None = None) -> None:
        import openai

        from harness.llm.bounded import LARGEST, bounded_client

        key = api_key(variable)
        if key is None:
            message = f"set {variable} (any value works for a local server that needs no key)"
            raise JudgeError(f"model {model} at {bare_address(server)}: {message}")
        self._client = openai.AsyncOpenAI(
            base_url=server,
            api_key=key,
            organization=api_key("OPENAI_ORG_ID"),
            project=api_key("OPENAI_PROJECT_ID"),
            max_retries=0,
            timeout=openai.Timeout(None, connect=10.0),
            http_client=bounded_client(largest or LARGEST),
        )

    async def close(self) -> None:
        """Close all open connections."""
        await self._client.close()

    async def send(self, body: Mapping[str, Any], timeout: float) -> Reply:
        """Post one chat completion, within `timeout` seconds in total. Raises Refused if there is no usable answer."""
        return _read(await self.post("/chat/completions", body, timeout))

    async def post(self, path: str, body: Mapping[str, Any], timeout: float) -> bytes:
        """Post a JSON body to a path of the server; returns the response body. Raises Refused, as `send` does."""
        import httpx2
        import openai

        from harness.llm.bounded import ANSWERED, TooLargeError

        try:
            async with asyncio.timeout(timeout):
                # The SDK's typed methods validate every message, which takes one or two milliseconds per call.
                response = await self._client.post(path, cast_to=httpx2.Response, body=dict(body))
                return response.content
        except TimeoutError:
            raise Refused("timeout", f"no complete answer within {timeout:g} s", again=True) from None
        except openai.APIStatusError as error:
            raise _refusal(error) from None
        except openai.APITimeoutError:
            raise Refused("timeout", "the connection timed out", again=True) from None
        except TooLargeError as error:
            raise Refused("server", str(error), answered=True) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, TooLargeError):
                raise Refused("server", str(error.__cause__), answered=True) from None
            begun = bool(error.request.extensions.get(ANSWERED))
            raise Refused("network", safe(_reason(error)), again=True, answered=begun) from None
        except Exception as error:
            # The HTTP library may raise any of its errors while reading an error body; other exceptions are bugs.
            if type(error).__module__.partition(".")[0] not in ("httpx2", "httpcore2", "ssl", "zlib", "h11"):
                raise
            raise Refused("network", safe(_reason(error)), again=True, answered=True) from None


def read_json(raw: bytes) -> Any:
    """Parse a response as JSON, with well-formed strings. Raises Refused if it is not JSON."""
    try:
        return well_formed_json(json.loads(raw))
    except (ValueError, RecursionError):
        shown = safe(raw[:60].decode("utf-8", "replace"))
        raise Refused(
            "server", f"the answer is not JSON: {shown!r}", again=True, body=_kept(raw), answered=True
        ) from None


def _kept(raw: bytes) -> bytes:
    """A response without secrets, as it is stored."""
    text = raw.decode("utf-8", "replace")
    if "\\u" in text:
        with contextlib.suppress(ValueError, RecursionError):  # \\u0073 may be a letter of a secret
            text = json.dumps(well_formed_json(json.loads(text)), ensure_ascii=False)
    return redact(text).encode()


def _read(raw: bytes) -> Reply:
    answer, kept = read_json(raw), _kept(raw)
    if not isinstance(answer, dict):
        raise Refused("server", "the answer is not a JSON object", again=True, body=kept, answered=True)
    usage = Usage.of(answer.get("usage"))
    if answer.get("error"):
        detail = f"the server returned an error as its answer: {safe(error_message(answer['error']))}"
        kind: FailureKind = "quota" if "insufficient_quota" in json.dumps(answer["error"]) else "server"
        raise Refused(kind, detail, kind == "server", None, None, usage, kept, True)
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(message, dict):
        raise Refused("server", "the answer has no choices", True, None, None, usage, kept, True)
    content, refusal = message.get("content"), message.get("refusal")
    return Reply(
        content if isinstance(content, str) else "",
        safe(str(first.get("finish_reason") or "")),
        usage,
        safe(str(answer.get("model") or ""))[:200],
        kept,
        safe(refusal) if isinstance(refusal, str) else "",
    )


def _refusal(error: "openai.APIStatusError") -> Refused:
    status, headers = error.status_code, error.response.headers
    inner = error.body if isinstance(error.body, dict) else {}
    code = f"{inner.get('code') or ''} {inner.get('type') or ''}"
    message = safe(error_message(error.body if error.body is not None else error.message))
    wait = retry_after(headers.get("retry-after-ms"), headers.get("retry-after"), time.time())
    refused = Refused("server", f"HTTP {status}: {message}", wait=wait)
    refused.body = refused.detail.encode()
    refused.kind, refused.again = failure_kind(status, code, message, headers.get("x-should-retry") != "false")
    if refused.kind == "bad_request" and status in (400, 422):
        refused.parameter = _parameter(str(inner.get("param") or ""), message)
    if refused.kind == "server" and status < 400:
        refused.detail = f"HTTP {status}: the server redirects; set base_url to its new address"
    if refused.kind == "context_too_long" and status == 429:
        refused.shrinks = True
    if not refused.again:
        refused.wait = None
    return refused


def failure_kind(status: int, code: str, message: str, retriable: bool) -> tuple[FailureKind, bool]:
    """The failure kind of an HTTP status, and whether the same request may succeed later."""
    if status == 402:
        return "quota", False
    if status in (400, 403, 422, 451) and _moderated(code, message):
        return "content_filter", False
    if status in (401, 403):
        return "auth", False
    if status == 404:
        return "unknown_model", False
    if status == 429:
        if "insufficient_quota" in code or "billing" in code:
            return "quota", False
        return ("context_too_long", False) if _beyond_a_minute(message) else ("rate_limit", True)
    if status == 413 or _too_long(code, message):
        return "context_too_long", False
    if status == 408:
        return "timeout", True
    if "content_filter" in code:
        return "content_filter", False
    if 400 <= status < 500 and status != 409:
        return "bad_request", False
    return "server", status >= 400 and retriable


def safe(text: str) -> str:
    """Text from a server, without secrets and anything that looks like a key, safe to print."""
    return visible(re.sub(r"\bsk-[A-Za-z0-9_\-*]{8,}", REDACTED, redact(well_formed(text))))


def retry_after(ms: str | None, after: str | None, now: float) -> float | None:
    """Seconds to wait, from the headers `retry-after-ms` and `retry-after` (seconds or a date); None if invalid."""
    for value, scale in ((ms, 1000.0), (after, 1.0)):
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            seconds = _until(value, now)
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _until(date: str, now: float) -> float:
    """The seconds until a date in an HTTP header; NaN if it is invalid or out of range."""
    try:
        parsed = email.utils.parsedate_tz(date)
        return email.utils.mktime_tz(parsed) - now if parsed else math.nan
    except (ValueError, OverflowError, TypeError, IndexError):
        return math.nan


def error_message(error: Any) -> str:
    """The message of an error in a response, in one line of at most 300 characters."""
    text = error.get("message", error) if isinstance(error, dict) else error
    if isinstance(text, dict) and isinstance(text.get("message"), str):
        text = text["message"]
    return " ".join(str(text)[:4000].split())[:300]


def _reason(error: Exception) -> str:
    inner = error.__cause__ or error
    text = " ".join(str(inner)[:4000].split())[:200]
    return f"{type(inner).__name__}: {text}" if text else type(inner).__name__


def _too_long(code: str, message: str) -> bool:
    words = message.lower()
    return "context_length" in code or (
        "context" in words and any(word in words for word in ("length", "window", "exceed", "too long", "too large"))
    )


_MODERATED = ("moderation", "content_filter", "content_policy", "content policy", "flagged", "safety", "prohibited")


def _moderated(code: str, message: str) -> bool:
    """Whether content moderation refused the request, as opposed to a problem with the key or the request."""
    words = f"{code} {message}".lower()
    return any(word in words for word in _MODERATED)


_LIMIT = re.compile(r"limit:? *([0-9][0-9,]{0,15}).{0,40}?requested:? *([0-9][0-9,]{0,15})", re.IGNORECASE)


def _beyond_a_minute(message: str) -> bool:
    """Whether this request alone exceeds the limit of tokens per minute: waiting cannot help, a smaller request can."""
    found = _LIMIT.search(message)
    if found:
        limit, requested = (int(part.replace(",", "")) for part in found.groups())
        return requested > limit
    return "request too large" in message.lower()


_UNKNOWN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|not accept|no longer|"
    r"extra (?:input|field)|invalid (?:value|param|arg)|must be|does not (?:exist|work)|only the default",
    re.IGNORECASE,
)


def _parameter(named: str, message: str) -> str | None:
    """The parameter that a server refuses, from the error's `param` field or from the wording of its message.

    Many servers name it only in the message. A message that merely mentions a temperature is not a refusal of it.
    """
    for name in _PARAMETERS:
        if named == name or named.startswith((f"{name}.", f"{name}[")):
            return name
    if not _UNKNOWN.search(message):
        return None
    for name in _PARAMETERS:
        quoted = re.search(rf"""['"`]{name}['"`.\[]""", message)
        stated = re.search(
            rf"(?i)\b(?:parameters?|arguments?|fields?|keys?|value for|propert(?:y|ies)):? {name}\b", message
        )
        if quoted or stated or ("_" in name and name in message):
            return name
        if re.search(
            rf"(?i)\b{name}\b(?: parameter| argument| field|: extra| is not supported| not supported)", message
        ):
            return name
    return None
