"""A server for judges, and a project that uses it."""

from typing import Any

import pytest
from judged_experiments import behave
from openai_server import default_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with default_server(monkeypatch, behave) as running:
        yield running
