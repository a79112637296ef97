"""Reranking: a cross-encoder, a server and a language model; scores are computed and paid once, costs planned."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai_server import Asked, Raw, Server, default_server, reranked

from harness import Experiment, Trial, plan, run
from harness.components.chunkers import Fixed
from harness.components.llm_roles import UNGRADED
from harness.components.retrievers import BM25
from harness.components.selectors import Rerank, RerankApi, RerankLlm, TopK
from harness.core.errors import ConfigError, HarnessError, JudgeError
from harness.core.records import Chunk, Drop, Hit, Query
from harness.experiment.reader_price import Reader
from harness.running.models import Models
from harness.running.stages.rerank import WARM_UP
from reports import columns

TEXTS = ["Rye needs steam.", "", "The oven holds heat. " * 60, "Cats sleep.", "é 你好 🧑‍🍳"]


def study(base_dir: Path, *steps: Any, depth: int = 12, grid: Any = ()) -> Experiment:
    base = Trial("garden", Fixed(20), BM25(depth=depth), tokenizer="words", metrics=("recall@3",), selector=steps)
    return Experiment("rerank", base, grid, base_dir=base_dir)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with default_server(monkeypatch, reranked) as running:
        monkeypatch.setenv("RERANK_API_KEY", "any")
        yield running


def test_the_best_k_in_order() -> None:
    """By the new scores; ties keep their order; the others are dropped with a reason."""
    hits = [Hit(Chunk("d", at, at + 1, "x"), score) for at, score in enumerate((0.2, 0.9, 0.2, 0.5))]
    outcome = Rerank(k=3).select(Query("q", "?"), hits)
    assert [hit.chunk.start for hit in outcome.kept] == [1, 3, 0]
    assert [(drop.hit.chunk.start, drop.reason) for drop in outcome.dropped] == [(2, "reranked below 3")]


def test_the_cross_encoder_matches_sentence_transformers(cross_encoder: Path) -> None:
    """The same scores as `predict` for empty, long and non-English texts, independent of the other texts."""
    from sentence_transformers import CrossEncoder

    step = Rerank(model=str(cross_encoder))
    scores = step.score("what does rye need?", TEXTS)
    reference = CrossEncoder(str(cross_encoder), device="cpu").predict([("what does rye need?", t) for t in TEXTS])
    assert scores == pytest.approx(reference, abs=1e-5)
    assert np.array_equal(scores[::-1], step.score("what does rye need?", TEXTS[::-1]))
    assert np.array_equal(scores[2:3], step.score("what does rye need?", TEXTS[2:3]))
    assert len(step.score("?", [])) == 0


def test_a_missing_model() -> None:
    """The error is one line with the name."""
    with pytest.raises(ConfigError, match="selector rerank: the model 'no/such' is not a folder, not cached"):
        Rerank(model="no/such").score("?", ["x"])


def test_a_pair_is_scored_once(garden_data: Path, tmp_path: Path, cross_encoder: Path, monkeypatch: Any) -> None:
    """Once for all depths, values of `k` and launches; a model folder may move, as its content identifies it."""
    asked: list[tuple[str, str]] = []
    original = Rerank.score

    def counted(self: Rerank, query: str, texts: Any) -> Any:
        asked.extend((query, text) for text in texts if query != WARM_UP)
        return original(self, query, texts)

    monkeypatch.setattr(Rerank, "score", counted)
    step = Rerank(model=str(cross_encoder), k=3)
    grid = {"retriever.depth": [6, 12], "selector.rerank.k": [2, 3]}
    made = study(tmp_path, step, grid=grid)
    launch = run(made, store=tmp_path / "s", log=False)
    assert len(asked) == len(set(asked))
    assert all(len(passages) <= 3 for passages in launch.results[1].evidence_outcomes)
    before = len(asked)
    again = run(replace(made, grid={**grid, "selector.rerank.k": [1, 2, 3, 4]}), store=tmp_path / "s", log=False)
    assert len(asked) == before
    assert not {"chunk", "index", "retrieve"} & set(again.work)
    # The time that reranking took counts for every trial that uses the scores.
    assert launch.results[0].efficiency["select_p50_ms"] > launch.results[0].efficiency["retrieve_p50_ms"]
    assert launch.results[0].efficiency["step_rerank_input"] <= 6


def test_workers_change_nothing(garden_data: Path, tmp_path: Path, cross_encoder: Path) -> None:
    """Selections that need models are made in the one process that has loaded them."""
    made = study(tmp_path, Rerank(model=str(cross_encoder), k=3), TopK(2), grid={"chunker.size": [20, 30]})
    alone = run(made, store=tmp_path / "a", log=False)
    together = run(made, store=tmp_path / "b", log=False, workers=2)
    assert [r.means() for r in alone.results] == [r.means() for r in together.results]
    assert alone.work == together.work


@pytest.mark.parametrize("shape", ["cohere", "voyage", "tei"])
def test_servers_answer_in_three_ways(server: Server, shape: str) -> None:
    """`results`, `data`, or a plain list of `score`; sorted by score, so that the indices must be used."""

    def behave(asked: Asked) -> Any:
        body = asked.body if "documents" in asked.body else {**asked.body, "documents": asked.body["texts"]}
        rows = reranked(replace(asked, body=body))["results"]
        if shape == "voyage":
            return {"data": rows, "usage": {"total_tokens": 3}}
        if shape == "tei":
            bare: Any = [{"index": row["index"], "score": row["relevance_score"]} for row in rows]
            return Raw(200, bare)
        return {"results": rows}

    server.behave = behave
    step = RerankApi(base_url=server.url, protocol="tei" if shape == "tei" else "cohere")
    assert step.score("rye steam", ["no word", "rye", "rye steam"]).tolist() == [0, 0.5, 1]
    assert [asked.path for asked in server.asked] == ["/v1/rerank"]


def test_many_texts_go_in_several_requests(server: Server) -> None:
    """At most `at_once` texts per request; the scores are put together in order."""
    step = RerankApi(base_url=server.url, at_once=2)
    assert step.score("a b", ["a", "b", "c", "a b", "b"]).tolist() == [0.5, 0.5, 0, 1, 0.5]
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"results": [{"index": 0, "relevance_score": 1}]}, "1 of 2 texts have a score"),
        ({"results": [{"index": 7, "relevance_score": 1}]}, "expected {index, relevance_score} below index 2"),
        ({"results": [{"index": 0, "relevance_score": "high"}]}, "expected {index, relevance_score}"),
        ({"results": [{"index": 0, "relevance_score": True}]}, "expected {index, relevance_score}"),
        ({"answer": 42}, "0 of 2 texts have a score"),
        (Raw(401, {"error": {"message": "no such key"}}), "no such key"),
    ],
)
def test_invalid_answers_are_rejected(server: Server, answer: Any, expected: str) -> None:
    """The error is one line that names the server; no score is guessed."""
    server.behave = lambda asked: answer
    with pytest.raises(ConfigError) as caught:
        RerankApi(base_url=server.url, retries=0).score("?", ["a", "b"])
    assert expected in str(caught.value)
    assert server.url in str(caught.value)


def test_requests_are_planned_capped_and_accounted(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """One per query; none is sent beyond the budget, without a price, or offline."""
    step = RerankApi(base_url=server.url, model="r", usd_per_thousand=2.0, k=3)
    made = study(tmp_path, step)
    assert plan(made, store=tmp_path / "s").calls == ["rerank_api (r): at most 13 requests per trial, $0.0260"]
    with pytest.raises(
        JudgeError, match=r"--budget 0.01: not enough is left for rerank_api \(r\), which costs \$0.0240"
    ):
        run(made, store=tmp_path / "s", log=False, models=Models(budget=0.01))
    with pytest.raises(JudgeError, match="--offline sends nothing"):
        run(made, store=tmp_path / "s", log=False, models=Models(offline=True))
    unpriced = study(tmp_path, replace(step, usd_per_thousand=None))
    with pytest.raises(JudgeError, match="the price of rerank_api"):
        run(unpriced, store=tmp_path / "s", log=False, models=Models(budget=1))
    assert server.asked == []
    lines: list[str] = []
    launch = run(made, store=tmp_path / "s", log=False, models=Models(budget=0.03), notify=lines.append)
    assert len(server.asked) == 12  # the query about saffron finds nothing to rerank
    assert lines == ["rerank_api (r): 12 requests, $0.0240"]
    assert launch.judging_report.spend.usd == pytest.approx(0.024)
    assert launch.results[0].efficiency["rerank_usd"] == pytest.approx(0.024)
    server.asked.clear()
    again = run(made, store=tmp_path / "s", log=False, models=Models(offline=True))
    assert server.asked == []
    assert again.results[0].means() == launch.results[0].means()


def graded(asked: Asked) -> Any:
    """The grade is higher the more of the question's words a passage has; passages about cedar cannot be graded."""
    words = set(asked.question.lower().split())
    record = {slot: {"grade": min(10, len(words & set(text.lower().split())))} for slot, text in asked.fenced.items()}
    return {slot: entry for slot, entry in record.items() if "cedar" not in asked.fenced[slot].lower()}


def test_a_language_model_reranks(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Planned, asked in batches, pooled over trials, sorted by grade and then by previous order; stored permanently."""
    server.behave = lambda asked: {slot: {"grade": len(text) % 11} for slot, text in asked.fenced.items()}
    made = study(tmp_path, RerankLlm("m", k=3), grid={"selector.rerank_llm.k": [2, 3], "retriever.depth": [6, 12]})
    lines: list[str] = []
    planned = plan(made, store=tmp_path / "s", models=Models(price=(1, 2)))
    assert planned.calls == ["rerank_llm (m): grades for at most 156 passages per trial"]
    launch = run(made, store=tmp_path / "s", log=False, notify=lines.append, models=Models(price=(1, 2), budget=1))
    assert [line.partition(" calls")[0] for line in lines] == [f"rerank_llm (m): {len(server.calls)}"]
    seen = [(asked.question, text) for asked in server.calls for text in asked.fenced.values()]
    assert len(seen) == len(set(seen))
    assert launch.results[0].efficiency["rerank_usd"] > 0
    assert launch.results[0].params["selector.rerank_llm.model"] == "m"
    server.asked.clear()
    again = run(made, store=tmp_path / "s", log=False, workers=2)
    assert server.asked == []
    assert [r.means() for r in again.results] == [r.means() for r in launch.results]


def test_missing_grades_are_dropped_or_stop_the_run(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """If more than `max_failed` are missing, the run stops with an error; otherwise such passages are dropped."""
    server.behave = graded
    step = RerankLlm("m")
    with pytest.raises(JudgeError, match=r"rerank_llm: \d+ of \d+ passages have no grade, such as missing_label"):
        run(study(tmp_path, step), store=tmp_path / "s", log=False)
    lenient = study(tmp_path, replace(step, max_failed=1.0))
    launch = run(lenient, store=tmp_path / "s", log=False)
    from harness.running.session import Session

    session = Session(lenient, tmp_path / "s")
    for selection in session.outputs(session.trials[0]).selections:
        scores = [pick.score for pick in selection.kept]
        assert scores == sorted(scores, reverse=True)
        assert all(score >= 0 for score in scores)
        assert all(pick.reason == "no grade" for pick in selection.dropped)
    assert any("passages have no grade and were dropped" in warning for warning in launch.warnings)


def test_never_the_judges_model(garden_data: Path, tmp_path: Path) -> None:
    """Provider prefix and case are ignored."""
    from judges import ContextPrecision

    base = replace(study(tmp_path, RerankLlm("Some-Model")).base, judges=(ContextPrecision("vendor/some-model"),))
    with pytest.raises(ConfigError, match="Some-Model is also the model of context_precision"):
        Experiment("x", base, base_dir=tmp_path).trials()


def test_a_reranker_that_returns_invalid_scores(garden_data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """NaN and a wrong count are rejected with its name."""
    for scores, message in ((np.full(99, np.nan), "not a number"), (np.zeros(0), "returned scores of shape")):

        def score(self: Rerank, query: str, texts: Any, scores: Any = scores) -> Any:
            return scores[: len(texts)]

        monkeypatch.setattr(Rerank, "score", score)
        with pytest.raises(HarnessError, match=f"selector rerank: .*{message}"):
            run(study(tmp_path, Rerank(model="x")), store=tmp_path / message[:3], log=False)


def test_a_failed_grade_does_not_affect_the_others() -> None:
    """It is dropped with a reason; scaled scores of the others are the same as without it."""
    hits = [Hit(Chunk("d", at, at + 1, "x"), score) for at, score in enumerate((10.0, UNGRADED, 1.0, 0.0))]
    outcome = RerankLlm("m").select(Query("q", "?"), hits)
    assert [hit.score for hit in outcome.kept] == [10, 1, 0]
    assert outcome.dropped == [Drop(hits[1], "no grade")]


def test_duplicates_are_scored_and_timed_once(make_data: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """Ten documents of one text are one pair; the model is loaded before the clock starts."""
    asked: list[int] = []

    def slow(self: Rerank, query: str, texts: Any) -> Any:
        asked.append(len(texts))
        return np.zeros(len(texts))

    monkeypatch.setattr(Rerank, "score", slow)
    evidence = [{"doc": "d0", "start": 0, "end": 3, "quote": "Rye"}]
    documents = [{"id": f"d{n}", "text": "Rye needs steam."} for n in range(10)]
    make_data(documents, [{"id": "q", "text": "rye", "evidence": evidence}], name="garden")
    run(study(tmp_path, Rerank(model="x")), store=tmp_path / "s", log=False)
    assert asked == [1, 1]  # the warm-up, and the pair


def test_several_requests_per_query_are_counted(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Five passages per request: the planned, capped and accounted requests are the ones sent."""
    step = RerankApi(base_url=server.url, model="r", usd_per_thousand=2.0, at_once=5)
    lines: list[str] = []
    launch = run(study(tmp_path, step), store=tmp_path / "s", log=False, notify=lines.append, models=Models(budget=1))
    sent = len(server.asked)
    assert sent > 12
    assert lines == [f"rerank_api (r): {sent} requests, ${sent * 0.002:.4f}"]
    assert launch.results[0].efficiency["rerank_usd"] == pytest.approx(sent * 0.002)


def test_an_unknown_price(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """The cost per query is not reported, and the reason is."""
    made = replace(study(tmp_path, RerankApi(base_url=server.url)), reader=Reader(price=0.4))
    launch = run(made, store=tmp_path / "s", log=False)
    assert "usd_per_query" not in launch.results[0].efficiency
    assert any("the price of rerank_api is not known" in warning for warning in launch.warnings)
    assert columns.columns(launch, ["usd_per_query"])[0][1][0] != 0
