"""Posts JSON to a server from synchronous code, for embeddings and reranking, with retries as for chat calls."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.core.errors import ConfigError, JudgeError
from harness.core.secrecy import bare_address
from harness.llm.blocking import blocking
from harness.llm.retry_policy import RetryPolicy
from harness.llm.transport import KEY, LONGEST_WAIT, Connection, Refused, read_json

LARGEST = 200_000_000
"""Limit of a response in bytes, enough for 2,000 vectors of 4,096 dimensions as text."""


@dataclass(frozen=True)
class Post:
    """Posts JSON to one path of a server on behalf of a component.

    `part` names the component in errors. A request takes at most `timeout` seconds. A failed request is repeated up to
    `retries` times within `give_up_after` seconds. `variable` is the environment variable that holds the key.
    """

    part: str
    server: str
    model: str
    path: str
    retries: int
    timeout: float
    give_up_after: float
    variable: str = KEY

    @property
    def where(self) -> str:
        """The component, its model and the server address without credentials, for messages."""
        return f"{self.part}: {self.model} at {bare_address(self.server)}"

    def answers(self, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Post the bodies one after another; returns the JSON responses. Raises ConfigError if a request fails."""
        try:
            return blocking(self._all(bodies))
        except Refused as refused:
            raise ConfigError(f"{self.where}: {refused.detail}") from None
        except JudgeError as error:  # no key is set
            raise ConfigError(f"{self.part}: {error}") from None

    async def _all(self, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
        connection = Connection(self.server, self.model, variable=self.variable, largest=LARGEST)
        try:
            return [await self._one(connection, body) for body in bodies]
        finally:
            await connection.close()

    async def _one(self, connection: Connection, body: Mapping[str, Any]) -> Any:
        retry_policy, begun, failed = RetryPolicy(attempts=self.retries + 1), time.monotonic(), 0
        while True:
            try:
                return read_json(await connection.post(self.path, body, self.timeout))
            except Refused as refused:
                failed += 1
                wait = max(retry_policy.delay(failed) * (0.5 + random.random() / 2), refused.wait or 0.0)
                if not refused.again or failed >= retry_policy.attempts or wait > LONGEST_WAIT:
                    raise
                if time.monotonic() - begun + wait > self.give_up_after:
                    raise
                await asyncio.sleep(wait)
