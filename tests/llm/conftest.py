"""A key for every server of the tests."""

import asyncio

import pytest


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The requested pauses, in seconds; no time is actually spent."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        pauses.extend([seconds] if seconds else [])
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    return pauses
