"""A service over HTTP as a trial: asked once, scored like its raw output; each fault is a failure of the right kind."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from project import FIRST, harness
from search_service import Answer, Asked, SearchService, as_json, serving

from harness import ConfigError, Experiment, JudgeError, Trial, plan, run
from harness.components.chunkers import Fixed, NoChunker
from harness.components.retrievers import BM25, Http
from harness.core.records import Document
from harness.core.secrecy import REDACTED
from harness.data.dataset import read_corpus
from harness.data.manifest import read_manifest
from harness.running.launch_result import Launch

OURS = Trial("garden", Fixed(size=20), BM25(depth=5), tokenizer="words", metrics=("recall@3", "mrr"))


def paragraphs(documents: list[Document]) -> list[tuple[str, str]]:
    """Three sentences each."""
    return [
        (doc.id, ". ".join(part))
        for doc in documents
        for sentences in [doc.text.split(". ")]
        for part in (sentences[at : at + 3] for at in range(0, len(sentences), 3))
    ]


@pytest.fixture
def documents(garden_data: Path) -> list[Document]:
    return read_corpus(read_manifest(garden_data))


@pytest.fixture
def service(documents: list[Document]) -> Iterator[SearchService]:
    with serving(SearchService(paragraphs(documents))) as made:
        yield made


def http(service: SearchService, **changes: Any) -> Http:
    settings = {
        "passages": "result.hits",
        "text": "content",
        "score": "score",
        "id": "number",
        "depth": 4,
        "retries": 1,
    }
    return Http(service.url, **{**settings, **changes})


def launched(garden_data: Path, retriever: Http, folder: Path, **changes: Any) -> Launch:
    trial = replace(OURS, data=str(garden_data), chunker=NoChunker(), retriever=retriever, **changes)
    return run(Experiment("t", trial, []), store=folder / "s", log=False)


def expected(service: SearchService, launch: Launch, documents: list[Document], k: int) -> list[float]:
    """The recall at `k` from the raw output of the service: whether a passage has half of the evidence."""
    assert launch.session is not None
    texts = {doc.id: doc.text for doc in documents}
    found = []
    for query in launch.session.outputs(launch.session.trials[0]).queries:
        if not query.evidence:
            found.append(np.nan)
            continue
        (place,) = query.evidence[0].places
        best = 0
        for doc, text, _ in service.best(query.text, 4)[:k]:
            start = texts[doc].index(text)
            best += max(0, min(start + len(text), place.end) - max(start, place.start)) if doc == place.doc else 0
        found.append(float(2 * best >= place.end - place.start))
    return found


@pytest.mark.parametrize("changes", [{}, {"doc": "source.doc"}, {"score": ""}])
def test_scores_are_those_of_the_raw_output(
    service: SearchService, garden_data: Path, documents: list[Document], tmp_path: Path, changes: dict[str, str]
) -> None:
    """The service changes white space and says nothing of offsets."""
    launch = launched(garden_data, http(service, **changes), tmp_path)
    (result,) = launch.results
    for k in (1, 3):
        assert np.array_equal(result.scores[f"recall@{k}"], expected(service, launch, documents, k), equal_nan=True)
    assert result.efficiency["unmapped"] == result.efficiency["unanswered"] == 0
    assert {asked.k for asked in service.asked} == {4}
    assert 0 < result.efficiency["retrieve_p50_ms"] <= result.efficiency["retrieve_p99_ms"]


def test_each_query_is_asked_once(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """By launches, trials and workers; again in another store, or for another release."""
    retriever, asked = http(service), []
    grid = Experiment(
        "t",
        replace(OURS, data=str(garden_data), chunker=NoChunker(), retriever=retriever, metrics=("recall@1",)),
        {"retriever": [retriever, replace(retriever, release="2")]},
    )
    first = run(grid, store=tmp_path / "s", log=False, workers=2)
    asked.append(len(service.asked))
    run(grid, store=tmp_path / "s", log=False)
    launched(garden_data, replace(retriever, concurrency=1, timeout=5), tmp_path)
    asked.append(len(service.asked))
    launched(garden_data, retriever, tmp_path / "fresh")
    asked.append(len(service.asked))
    queries = len(first.results[0].queries)
    assert asked == [2 * queries, 2 * queries, 3 * queries]


def test_get(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """The query is sent after the `?`, with keys of the environment only in headers."""
    retriever = http(service, method="GET", params={"q": "{query}", "n": "{k}"}, headers={"X-Api-Key": "GARDEN_KEY"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARDEN_KEY", "Bearer gardenSecret4711")
        launch = launched(garden_data, retriever, tmp_path)
    assert launch.results[0].mean("recall@3") > 0
    assert {asked.headers["X-Api-Key"] for asked in service.asked} == {"Bearer gardenSecret4711"}
    assert all("gardenSecret" not in asked.path for asked in service.asked)
    for file in (tmp_path / "s").rglob("*"):
        assert not file.is_file() or b"gardenSecret" not in file.read_bytes()


def odd_hits(*hits: Any) -> Answer:
    return as_json({"result": {"hits": list(hits)}})


GOOD = {"content": "Amber", "score": 1.0}
MANY = [{**GOOD, "score": 9.0 - at} for at in range(9)]
FAULTS: dict[str, tuple[Callable[[Asked, int], Answer | None], str, int]] = {
    "status": (lambda *_: as_json({"error": "the index is gone"}, 500), "HTTP 500: the index is gone", 2),
    "wrong request": (lambda *_: as_json({"detail": "no field query"}, 422), "HTTP 422: .*no field query", 1),
    "redirect": (lambda *_: (307, {"Location": "http://127.0.0.1:9/"}, b""), "HTTP 307: the service redirects", 1),
    "not JSON": (lambda *_: (200, {}, b"<html>"), "the answer is not JSON: '<html>'", 2),
    "cut": (
        lambda *_: (200, {"Content-Length": "500", "Connection": "close"}, b'{"result"'),
        "(RemoteProtocolError|ReadError)",
        2,
    ),
    "huge": (lambda *_: (200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * 9_000_000)), "larger than 8 MB", 1),
    "no list": (lambda *_: as_json({"result": {}}), "the answer has no list at `result.hits`", 1),
    "wrong type": (lambda *_: odd_hits({**GOOD, "content": 7}), "passage 1: expected a text at `content`, got 7", 1),
    "no text": (lambda *_: odd_hits({"score": 1}), "passage 1: expected the text of the passage at `content`", 1),
    "NaN": (
        lambda *_: (200, {}, b'{"result": {"hits": [{"content": "Amber", "score": NaN}]}}'),
        "passage 1: expected a number at `score`, got nan",
        1,
    ),
    "wrong order": (lambda *_: odd_hits(GOOD, {**GOOD, "score": 2}), "passage 2 has a higher score than passage 1", 1),
    "a function of nothing": (lambda *_: odd_hits({"score": 1}), "`join\\('', parts\\)`: ", 1),
    "k ignored": (lambda *_: odd_hits(*MANY), "the answer has 9 passages, but 4 were asked for", 1),
}


PATHS = {"a function of nothing": {"text": "join('', parts)"}}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_hostile_service(fault: str, service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """One line that says what it did; repeated only if that may pass; nothing is stored."""
    service.misbehave, message, attempts = FAULTS[fault]
    with pytest.raises(JudgeError, match=rf"^retriever http: 13 of 13 queries have no answer, such as .*{message}"):
        launched(garden_data, http(service, timeout=5, concurrency=13, **PATHS.get(fault, {})), tmp_path)
    assert len(service.asked) == 13 * attempts
    service.misbehave = lambda asked, number: None
    assert launched(garden_data, http(service), tmp_path).results[0].mean("recall@3") > 0


def test_a_wrong_key_is_sent_once(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """All other requests would fail too; its value is in no message, and without a value nothing is sent."""
    service.misbehave = lambda asked, number: as_json({"message": f"bad {asked.headers.get('Authorization')}"}, 401)
    retriever = http(service, headers={"Authorization": "GARDEN_AUTH"}, concurrency=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARDEN_AUTH", "Bearer gardenSecret4712")
        with pytest.raises(JudgeError, match="HTTP 401: bad") as error:
            launched(garden_data, retriever, tmp_path)
    assert "gardenSecret" not in str(error.value)
    assert REDACTED in str(error.value)
    assert len(service.asked) == 1
    with pytest.raises(ConfigError, match=r"headers.Authorization: the environment variable GARDEN_AUTH is not set"):
        launched(garden_data, retriever, tmp_path)
    assert len(service.asked) == 1


def test_a_key_that_is_echoed_is_not_stored(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """Nor is one sent that no header may have."""
    service.misbehave = lambda asked, number: odd_hits({**GOOD, "content": f"Amber {asked.headers['Authorization']}"})
    retriever = http(service, headers={"Authorization": "GARDEN_AUTH"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARDEN_AUTH", "Bearer gardenSecret4714")
        launched(garden_data, retriever, tmp_path)
        for file in (tmp_path / "s").rglob("*"):
            assert not file.is_file() or b"gardenSecret" not in file.read_bytes()
        patch.setenv("GARDEN_AUTH", "Bearer …")
        with pytest.raises(ConfigError, match="variable GARDEN_AUTH has a character that no header may have"):
            launched(garden_data, replace(retriever, release="2"), tmp_path)


def test_too_many_requests(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """Are asked again when the service says; the latency is that of the answer."""

    def misbehave(asked: Asked, number: int) -> Answer | None:
        return as_json({"error": "slow down"}, 429, **{"Retry-After": "0.01"}) if number <= 5 else None

    service.misbehave = misbehave
    (result,) = launched(garden_data, http(service), tmp_path).results
    assert result.efficiency["unanswered"] == 0
    assert len(service.asked) == 13 + 5
    assert result.efficiency["error_rate"] == 5 / 18


def test_the_plan_says_how_many_are_asked(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """None after a run."""
    trial = replace(OURS, data=str(garden_data), chunker=NoChunker(), retriever=http(service))
    experiment, given = Experiment("t", trial, []), {"store": tmp_path / "s"}
    assert "http: 13 queries to ask another system; its price is not known" in plan(experiment, **given).calls
    assert not service.asked
    run(experiment, log=False, **given)
    assert not plan(experiment, **given).calls


def test_a_slow_service(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """Is given up after the timeout."""
    import threading

    never = threading.Event()

    def misbehave(asked: Asked, number: int) -> Answer | None:
        never.wait(20)
        return None

    service.misbehave = misbehave
    try:
        with pytest.raises(JudgeError, match=r"no complete answer within 0.2 s"):
            launched(garden_data, http(service, timeout=0.2, retries=0, concurrency=13), tmp_path)
    finally:
        never.set()


def test_a_few_failures_are_missing_values(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """At most 2 % may fail: these queries have no score, and are asked again only in another store."""
    documents = [{"id": f"d{at}", "text": f"Plant number {at} needs {at} litres of water a day."} for at in range(60)]
    queries = [
        {"id": f"q{at}", "text": f"plant number {at}", "evidence": [{"doc": doc["id"]}]}
        for at, doc in enumerate(documents)
    ]
    root = make_data(documents, queries)
    with serving(SearchService([(doc["id"], doc["text"]) for doc in documents])) as service:
        service.misbehave = lambda asked, number: as_json({}, 422) if asked.query == "plant number 7" else None
        (result,) = launched(root, http(service, depth=3), tmp_path).results
    assert np.isnan(result.scores["recall@3"]).tolist() == [at == 7 for at in range(60)]
    bounds = result.uncertain["recall@3"]
    assert (bounds.low[7], bounds.high[7], bounds.withheld) == (0, 1, False)
    assert result.efficiency["unanswered"] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "localhost"}, "url: is not an address"),
        ({"url": "http://u:p@h/search"}, "url: holds a user, a password or a key"),
        ({"url": "http://h/s?k=1"}, "url: contains a query .* belongs into `params`"),
        ({"passages": "a["}, "passages: is not a JMESPath"),
        ({"text": ""}, "text: is needed, or doc, start and end"),
        ({"headers": {"X": "Bearer abc"}}, "headers.X: expected the name of an environment variable"),
        ({"headers": {"X Y": "KEY"}}, "headers: 'X Y' is not the name of a header"),
        ({"text": "lenght(a)"}, "text: is not a JMESPath: Unknown function"),
        ({"body": {"q": "x"}}, "body: does not send the query"),
        ({"body": {"{query}": "x"}}, "body: does not send the query"),
        ({"method": "GET"}, "params: does not send the query"),
    ],
)
def test_settings(settings: dict[str, Any], message: str, garden_data: Path, tmp_path: Path) -> None:
    """Wrong ones are one line before anything is sent."""
    retriever = Http(**{"url": "http://127.0.0.1:9/s", **settings})
    with pytest.raises(ConfigError, match=message):
        launched(garden_data, retriever, tmp_path)


def test_from_the_command_line(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """A YAML file beside our retrievers; the service is gone when it runs again, and is missed in another store."""
    settings = {"url": service.url, "passages": "result.hits", "text": "content", "depth": 4, "retries": 0}
    system = f"{{chunker: [none], retriever: [{{http: {json.dumps(settings)}}}]}}"
    grid = f"grid:\n  - retriever: [{{bm25: {{depth: 5}}}}]\n  - {system}\n"
    (tmp_path / "x.yaml").write_text(FIRST.replace("data: garden", f"data: {garden_data}") + grid)
    done = harness(tmp_path, "run", "x.yaml", "--store", "s")
    assert "none · http" in done.stdout
    assert len(service.asked) == 13
    service.misbehave = lambda asked, number: as_json({}, 503)
    harness(tmp_path, "run", "x.yaml", "--store", "s")
    assert len(service.asked) == 13
    done = harness(tmp_path, "run", "x.yaml", "--store", "t", code=None)
    assert done.returncode != 0
    assert "13 of 13 queries have no answer, such as HTTP 503" in done.stderr
    assert "the next run asks for these again" in done.stderr


def test_probing(service: SearchService, garden_data: Path, tmp_path: Path) -> None:
    """One question: what is sent and received, where passages are, and a failure in one line; no value of a header."""
    settings = {"url": service.url, "passages": "result.hits", "text": "content", "depth": 2, "retries": 0}
    settings["headers"] = {"X-Api-Key": "GARDEN_KEY"}
    system = f"chunker: none\nretriever: {{http: {json.dumps(settings)}}}\n"
    text = FIRST.replace("data: garden", f"data: {garden_data}").replace("chunker: {fixed: {size: 20}}\n", system)
    (tmp_path / "x.yaml").write_text(text.replace("retriever: {bm25: {depth: 5}}\n", "").replace("k: 3", "k: 2"))
    ask = ("probe", "retriever", "x.yaml", "How many litres does amber need?")
    done = harness(tmp_path, *ask, GARDEN_KEY="gardenSecret4713")
    for part in (
        '"method": "POST"',
        '"query": "How many litres',
        '"X-Api-Key": "GARDEN_KEY"',
        "2 passages in",
        "(normalised)",
    ):
        assert part in done.stdout
    assert "gardenSecret" not in done.stdout
    service.misbehave = lambda asked, number: odd_hits({**GOOD, "content": "Nowhere to be found, nowhere at all."})
    assert "unmapped: not in the corpus" in harness(tmp_path, *ask, GARDEN_KEY="gardenSecret4713").stdout
    service.misbehave = lambda asked, number: as_json({"result": 7})
    done = harness(tmp_path, *ask, code=2, GARDEN_KEY="gardenSecret4713")
    assert '"result": 7' in done.stdout
    assert done.stderr.startswith("harness: retriever http: the answer has no list at `result.hits`")
