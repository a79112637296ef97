"""A server for judges, and a project that uses it."""

from typing import Any

import pytest
from judged_experiments import behave
from openai_server import Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with Server(behave) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running
