"""The `api` embedder against a real HTTP server with OpenAI's embeddings API."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness import Experiment, Trial, plan, run
from harness.components.chunkers import Fixed, Semantic
from harness.components.embedders import Api, Local
from harness.components.embedders.model_prompts import expected_prompts
from harness.components.retrievers import BM25, Dense
from harness.components.selectors import MMR, Normalize
from harness.core.errors import ConfigError, JudgeError
from harness.running.models import Models


class Server(ThreadingHTTPServer):
    """Answers with the queued HTTP statuses first, then with `[length of the text, position]` in reverse order."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.lose = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({**body, "path": self.path, "key": self.headers["Authorization"]})
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        texts = body["input"][self.server.lose :]
        data = [{"object": "embedding", "index": at, "embedding": [len(text), at]} for at, text in enumerate(texts)]
        answer = {
            "object": "list",
            "model": body["model"],
            "data": data[::-1],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        content = json.dumps(answer if status == 200 else {"error": {"message": "no such key"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    running = Server()
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def api(server: Server, **settings: Any) -> Api:
    return Api("some-model", base_url=f"http://127.0.0.1:{server.server_port}/v1", **settings)


def test_batches_prompts_and_order(server: Server) -> None:
    """Two requests, of two texts and one; vectors are in the order of the texts, not of the answer."""
    made = api(server, batch=2, query_prompt="q: ", dimensions=2).embed(["a", "bb", "ccc"], queries=True)
    assert made.vectors.tolist() == [[4, 0], [5, 1], [6, 0]]
    assert [request["input"] for request in server.requests] == [["q: a", "q: bb"], ["q: ccc"]]
    assert server.requests[0]["path"] == "/v1/embeddings"
    assert server.requests[0]["key"] == "Bearer sk-test"
    assert server.requests[0]["dimensions"] == 2


def test_an_empty_text_is_not_sent_empty(server: Server) -> None:
    """Servers reject empty texts."""
    assert api(server).embed([""]).vectors.tolist() == [[1, 0]]


def test_a_busy_server_is_retried(server: Server) -> None:
    """Status 429, then 500, then the answer."""
    server.statuses = [429, 500]
    assert len(api(server).embed(["a"]).vectors) == 1
    assert len(server.requests) == 3


def test_a_rejected_request_is_one_line(server: Server) -> None:
    """The message does not contain the key."""
    server.statuses = [401]
    with pytest.raises(ConfigError, match="embedder api: some-model at http://127.0.0.1") as caught:
        api(server).embed(["a"])
    assert "no such key" in str(caught.value)
    assert "sk-test" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_vectors_are_an_error(server: Server) -> None:
    """A vector missing from the answer must not shift the others."""
    server.lose = 1
    with pytest.raises(ConfigError, match="returned 1 vector for 2 texts"):
        api(server).embed(["a", "b"])


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which variable to set."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        Api(base_url="http://127.0.0.1:9/none").embed(["a"])


def test_a_run_reports_embedding_costs(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Tokens of all chunks and queries times the price, in the plan before the run and in the result after it."""
    embedder = api(server, usd_per_million_tokens=2.0)
    base = Trial("garden", Fixed(20), Dense(), tokenizer="words", embedder=embedder, metrics=("recall@3",))
    study = Experiment("paid", base, base_dir=tmp_path)
    planned = plan(study, store=tmp_path / "s")
    (usd,) = planned.usd.values()
    assert server.requests == []
    facts = run(study, store=tmp_path / "s", log=False).results[0].efficiency
    assert facts["index_usd"] + facts["queries_usd"] == pytest.approx(usd)
    assert usd == pytest.approx(2.0 * sum(planned.tokens.values()) / 1e6)
    assert len([text for request in server.requests for text in request["input"]]) == sum(planned.texts.values())


@pytest.mark.parametrize(
    ("model", "prompts"),
    [
        ("intfloat/e5-base-v2", ("query: ", "passage: ")),
        ("multilingual-e5-small", ("query: ", "passage: ")),
        ("intfloat/multilingual-e5-large-instruct", None),
        ("BAAI/bge-small-en-v1.5", ("Represent this sentence for searching relevant passages: ", "")),
        ("BAAI/bge-m3", None),
        ("nomic-ai/nomic-embed-text-v1.5", ("search_query: ", "search_document: ")),
        ("all-MiniLM-L6-v2", None),
    ],
)
def test_models_that_need_prefixes(model: str, prompts: tuple[str, str] | None) -> None:
    """There is a warning if both prompts are missing, and none if either is set."""
    assert expected_prompts(model) == prompts
    advice = Local(model).advice()
    if prompts is None:
        assert advice is None
    else:
        assert advice is not None
        assert f"set query_prompt: {prompts[0]!r}" in advice
        assert Local(model, query_prompt="q: ").advice() is None
        assert Api(model=model).advice() == advice


def test_paid_embedding_is_reported_capped_and_blocked(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """For the index, for chunkers that use vectors, and for steps that compare: nothing disallowed is sent."""
    paid = Api(model="e", usd_per_million_tokens=1000.0)
    base = Trial("garden", Fixed(20), Dense(), embedder=paid, tokenizer="words", metrics=("recall@3",))
    steps = (Normalize(), MMR(2))
    trials = {
        "index": base,
        "cuts": replace(base, chunker=Semantic(), retriever=BM25()),
        "steps": replace(base, retriever=BM25(depth=3), selector=steps),
    }
    for name, trial in trials.items():
        made = Experiment(name, trial, base_dir=tmp_path)
        refusals = {"--offline sends nothing": Models(offline=True), "not enough is left": Models(budget=0.01)}
        for message, models in refusals.items():
            with pytest.raises(JudgeError, match=message):
                run(made, store=tmp_path / name, log=False, models=models)
        assert server.requests == []
    lines: list[str] = []
    made = Experiment("steps", trials["steps"], base_dir=tmp_path)
    launch = run(made, store=tmp_path / "steps", log=False, models=Models(budget=100), notify=lines.append)
    sent = sum(len(request["input"]) for request in server.requests)
    assert lines[0].startswith(f"api (e): {sent} texts to embed, ")
    assert f"${launch.results[0].efficiency['index_usd']:.4f}" in lines[0]
    assert launch.results[0].efficiency["queries_usd"] == 0
