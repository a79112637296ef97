"""Two launches at once on one store share the work: nothing is asked, embedded or reranked twice."""

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from openai_server import Asked, Raw, Server, grade_all, reranked
from project import harness, pairs_paid, project, started

from harness.llm.leases import Leases

KNOWN = {"OPENAI_API_KEY": "any"}


@pytest.fixture
def place(garden_data: Path, tracking: str, tmp_path: Path) -> Path:
    return tmp_path


def slow(asked: Asked) -> object:
    time.sleep(0.02)
    return grade_all(asked)


def test_no_question_is_asked_twice(place: Path) -> None:
    """Every pair of question and passage once, the probe once, and both launches report the same numbers."""
    project(place, ", batch: 1")
    with Server(slow) as server:
        known = {**KNOWN, "OPENAI_BASE_URL": server.url}
        both = [started(place, "run", "x.yaml", "--no-mlflow", **known) for _ in range(2)]
        outputs = [one.communicate(timeout=200) for one in both]
        assert [one.returncode for one in both] == [0, 0], outputs
        paid = Counter(pairs_paid(server.asked))
        assert len(paid) > 40
        assert set(paid.values()) == {1}
        assert sum(asked.is_probe for asked in server.asked) == 1
    tables = [[line for line in out.splitlines() if "fixed" in line] for out, _ in outputs]
    assert tables[0] == tables[1]


def test_a_killed_launch_releases_its_claims(place: Path) -> None:
    """Questions without a stored answer are asked again at once, the others are not."""
    project(place, ", batch: 1")
    begun = threading.Event()

    def behave(asked: Asked) -> object:
        if len(server.calls) > 5 and not begun.is_set():
            begun.set()
            return Raw(hang=True)
        return slow(asked)

    with Server(behave) as server:
        known = {**KNOWN, "OPENAI_BASE_URL": server.url}
        first = started(place, "run", "x.yaml", "--no-mlflow", **known)
        assert begun.wait(100)
        other = started(place, "run", "x.yaml", "--no-mlflow", **known)
        os.kill(first.pid, signal.SIGKILL)
        first.communicate()
        _, errors = other.communicate(timeout=200)
        assert other.returncode == 0, errors
        in_flight = 16
        assert sum(count - 1 for count in Counter(pairs_paid(server.asked)).values()) <= in_flight


def test_embeddings_and_rerankings_are_paid_once(place: Path) -> None:
    """By two launches with a paid embedder and a paid reranker."""
    sent: list[str] = []

    def behave(asked: Asked) -> object:
        time.sleep(0.02)
        if "input" in asked.body:
            sent.extend(asked.body["input"])
            data = [{"index": at, "embedding": [len(t), 1.0, at % 3]} for at, t in enumerate(asked.body["input"])]
            return {"data": data}
        sent.extend(json.dumps([asked.body["query"], text]) for text in asked.body["documents"])
        return reranked(asked)

    with Server(behave) as server:
        text = project(place, None).read_text()
        text = text.replace(
            "retriever: {bm25: {depth: 5}}", "retriever: {dense: {depth: 5}}\nembedder: {api: {batch: 5}}"
        )
        text = text.replace("[{top_k: {k: 3}}]", f"[{{rerank_api: {{base_url: '{server.url}', k: 3}}}}]")
        (place / "x.yaml").write_text(text)
        known = {**KNOWN, "OPENAI_BASE_URL": server.url, "RERANK_API_KEY": "any"}
        both = [started(place, "run", "x.yaml", "--no-mlflow", **known) for _ in range(2)]
        outputs = [one.communicate(timeout=200) for one in both]
        assert [one.returncode for one in both] == [0, 0], outputs
    assert len(sent) > 50
    assert set(Counter(sent).values()) == {1}


def test_claims_end_with_their_owner(tmp_path: Path) -> None:
    """Claims are free after release, close or death of their owner, and not before."""
    one, other = (Leases(tmp_path / "leases.sqlite") for _ in range(2))
    assert one.take(["a", "b"]) == {"a", "b"}
    assert one.take(["a"]) == {"a"}
    assert other.take(["a", "b", "c"]) == {"c"}
    one.release(["a"])
    assert other.take(["a", "b"]) == {"a"}
    one.close()
    assert other.take(["b"]) == {"b"}
    assert one.take(["a", "b", "d"]) == {"d"}


def test_a_launch_next_to_a_failing_one_asks_again(place: Path) -> None:
    """Questions that failed in the other launch are not lost."""
    project(place, ", batch: 1")
    refused: set[str] = set()

    def behave(asked: Asked) -> object:
        time.sleep(0.02)
        if asked.user not in refused and len(refused) < 10:
            refused.add(asked.user)
            return Raw(400, {"error": {"message": "no"}})
        return grade_all(asked)

    with Server(behave) as server:
        known = {**KNOWN, "OPENAI_BASE_URL": server.url}
        both = [started(place, "run", "x.yaml", "--no-mlflow", **known) for _ in range(2)]
        for one in both:
            one.communicate(timeout=200)
        assert {one.returncode for one in both} <= {0, 3}
        assert harness(place, "run", "x.yaml", "--no-mlflow", **known).returncode == 0
