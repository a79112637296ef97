"""JSON posted to a server from synchronous code: for embeddings and reranking, with the care that chat calls get."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harness.llm.blocking import blocking
from harness.llm.patience import Patience
from harness.llm.transport import LONGEST_WAIT, Connection, Refused, read_json

LARGEST = 200_000_000
"""Bytes of an answer: 2,000 vectors of 4,096 dimensions as text."""


def posted(
    connect: Mapping[str, str],
    path: str,
    bodies: Sequence[Mapping[str, Any]],
    *,
    retries: int,
    timeout: float,
    give_up_after: float,
) -> list[Any]:
    """The JSON values that a server answers to some bodies, in order.

    `connect` holds `server`, `model` and the `variable` of the key. A request takes `timeout` seconds at most and is
    repeated up to `retries` times, until nothing was answered for `give_up_after` seconds. Raises Refused where one is
    not answered, JudgeError where there is no key.
    """
    return blocking(_all(connect, path, bodies, Patience(attempts=retries + 1), timeout, give_up_after))


async def _all(
    connect: Mapping[str, str],
    path: str,
    bodies: Sequence[Mapping[str, Any]],
    patience: Patience,
    timeout: float,
    give_up_after: float,
) -> list[Any]:
    connection = Connection(**connect, largest=LARGEST)
    try:
        return [await _one(connection, path, body, patience, timeout, give_up_after) for body in bodies]
    finally:
        await connection.close()


async def _one(
    connection: Connection,
    path: str,
    body: Mapping[str, Any],
    patience: Patience,
    timeout: float,
    give_up_after: float,
) -> Any:
    begun, failed = time.monotonic(), 0
    while True:
        try:
            return read_json(await connection.post(path, body, timeout))
        except Refused as refused:
            failed += 1
            wait = max(patience.delay(failed) * (0.5 + random.random() / 2), refused.wait or 0.0)
            if not refused.again or failed >= patience.attempts or wait > LONGEST_WAIT:
                raise
            if time.monotonic() - begun + wait > give_up_after:
                raise
            await asyncio.sleep(wait)
