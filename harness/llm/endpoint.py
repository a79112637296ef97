"""Sends requests to a service of the user's own, several at once, paced and repeated as calls to models are."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.llm.rate_limiter import RateLimiter
from harness.llm.retry_policy import RetryPolicy
from harness.llm.transport import Refused, error_message, failure_kind, read_json, retry_after, safe

if TYPE_CHECKING:
    import httpx2


class Request(NamedTuple):
    """One request: `params` come after the `?` of the address, `body` is sent as JSON unless it is None."""

    method: str
    url: str
    headers: Mapping[str, str]
    params: Mapping[str, str]
    body: Any = None


@dataclass(frozen=True)
class Endpoint:
    """A service. At most `concurrency` requests are under way; each takes at most `timeout` seconds.

    A request that fails for a reason that may pass is repeated up to `retries` times. Redirects are not followed, as
    they could take the query and the keys to another host.
    """

    concurrency: int
    timeout: float
    retries: int

    async def ask(
        self,
        requests: Sequence[Request],
        done: Callable[[int, Any, Sequence[float]], None],
    ) -> None:
        """Send all requests, and report each as it ends.

        `done` gets the number of the request, the JSON of the response or the Refused that says why there is none, and
        the milliseconds of each attempt, none if it was not sent. After a refusal that all others would share, such as
        a wrong key, nothing more is sent.
        """
        from harness.llm.bounded import bounded_client

        client, limiter = bounded_client(), RateLimiter(self.concurrency)
        waiting = iter(enumerate(requests))
        fatal: list[Refused] = []

        async def worker() -> None:
            for at, request in waiting:
                if fatal:
                    done(at, Refused("network", f"not asked, after: {fatal[0].detail}"), ())
                    continue
                attempts: list[float] = []
                try:
                    content = await self._answered(client, limiter, request, attempts)
                except Refused as refused:
                    content = refused
                    fatal.extend([refused] if refused.fatal else [])
                done(at, content, attempts)

        try:
            await asyncio.gather(*(worker() for _ in range(min(self.concurrency, len(requests)))))
        finally:
            await client.aclose()

    async def _answered(
        self, client: "httpx2.AsyncClient", limiter: RateLimiter, request: Request, attempts: list[float]
    ) -> Any:
        """The JSON of a response; `attempts` gets how long each attempt took, in milliseconds. Raises Refused."""
        policy, failed, turns = RetryPolicy(attempts=self.retries + 1), 0, 0
        while True:
            async with limiter.turn():
                begun = time.perf_counter()
                try:
                    content = read_json(await self._sent(client, request))
                    limiter.passed()
                    return content
                except Refused as refused:
                    limited = refused.kind == "rate_limit"
                    failed, turns = failed + (not limited), turns + limited
                    if limited:
                        limiter.refused(refused.wait)
                    if not refused.again or policy.ends(refused, failed, turns):
                        raise
                    jitter = 0.5 + random.random() / 2
                    wait = 0.0 if limited else max(policy.delay(failed) * jitter, refused.wait or 0.0)
                finally:
                    attempts.append(1000 * (time.perf_counter() - begun))
            await asyncio.sleep(wait)

    async def _sent(self, client: "httpx2.AsyncClient", request: Request) -> bytes:
        import httpx2

        from harness.llm.bounded import TooLargeError

        headers = {**request.headers, "Accept": "application/json"}
        content = None if request.body is None else json.dumps(request.body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with asyncio.timeout(self.timeout):
                response = await client.request(
                    request.method, request.url, headers=headers, params=dict(request.params) or None, content=content
                )
                raw = response.content
        except TimeoutError:
            raise Refused("timeout", f"no complete answer within {self.timeout:g} s", again=True) from None
        except TooLargeError as error:
            raise Refused("server", str(error), answered=True) from None
        except httpx2.HTTPError as error:
            reason = " ".join(str(error)[:4000].split())[:200]
            raise Refused("network", safe(f"{type(error).__name__}: {reason}".rstrip(": ")), again=True) from None
        if not 200 <= response.status_code < 300:
            wait = retry_after(None, response.headers.get("retry-after"), time.time())
            raise _refused(response.status_code, raw, wait)
        return raw


def _refused(status: int, raw: bytes, wait: float | None) -> Refused:
    """The refusal of a response that is not a success."""
    if status < 400:
        return Refused("server", f"HTTP {status}: the service redirects; set url to its new address", answered=True)
    try:
        answer = json.loads(raw)
        named = [answer[name] for name in ("error", "message", "detail") if answer.get(name)] if answer else []
        said = error_message(named[0] if named else answer or "")
    except (ValueError, RecursionError, AttributeError):
        said = error_message(raw[:300].decode("utf-8", "replace"))
    kind, again = failure_kind(status, "", said, True)
    return Refused(kind, safe(f"HTTP {status}: {said}".rstrip(": ")), again=again, wait=wait if again else None)
