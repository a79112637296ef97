"""Other systems as trials: their passages score like our own, and what is missing or unmapped bounds the scores."""

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from project import FIRST, harness, one_line

from harness import ConfigError, Experiment, Trial, run
from harness.components.augmenters import Heading
from harness.components.chunkers import Fixed, NoChunker
from harness.components.retrievers import BM25, PassageRun
from harness.components.selectors import Dedup, TokenBudget, TopK
from harness.core.records import Query
from harness.data.runs import add_run
from harness.running.launch_result import Launch
from harness.running.stages.ranking_checks import read_rankings
from harness.running.trial_outputs import TrialOutputs
from reports.compare import compare
from reports.export import export

METRICS = ("recall@3", "recall@40t", "precision@3", "mrr", "ndcg@3", "span_iou@3")
OURS = Trial("garden", Fixed(size=20), BM25(depth=5), tokenizer="words", metrics=METRICS)
NOWHERE = "Rosemary row 9-9 grows beside nothing at all, and needs no litres whatsoever."


@pytest.fixture
def trial(garden_data: Path) -> Trial:
    return Trial(**{**vars(OURS), "data": str(garden_data)})


def outputs_of(launch: Launch, at: int = 0) -> TrialOutputs:
    assert launch.session is not None
    return launch.session.outputs(launch.session.trials[at])


def found(launch: Launch) -> dict[str, list[str]]:
    """The texts that the first trial of a launch retrieved, by query."""
    outputs = outputs_of(launch)
    ranked = read_rankings(outputs.rankings)
    rows = (ranked.row(at)[0].tolist() for at in range(ranked.queries))
    return {
        query.id: [outputs.passages.chunk(n).text for n in row]
        for query, row in zip(outputs.queries, rows, strict=True)
    }


def with_run(root: Path, rows: Mapping[str, Any], name: str = "theirs") -> PassageRun:
    """A retriever whose run was added to the data set; a row is a list of passages, or the text of an error."""
    file = root.parent / f"{name}.jsonl"
    lines = [
        {"query": query, **({"error": row} if isinstance(row, str) else {"passages": row})}
        for query, row in rows.items()
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    add_run(root, name, file)
    return PassageRun(name)


def theirs(trial: Trial, system: PassageRun, **changes: Any) -> Trial:
    return Trial(**{**vars(trial), "chunker": NoChunker(), "retriever": system, **changes})


def changed(text: str) -> str:
    """A text as a service might return it."""
    return "\n\n  " + re.sub(r"\s+", "\n", text.replace("-", "\u2010")) + " \n"


def test_the_same_passages_have_the_same_scores(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """Whether as texts that were changed, as texts of a document, or as offsets."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    outputs = outputs_of(ours)
    ranked = read_rankings(outputs.rankings)
    texts: dict[str, Any] = {query: [changed(text) for text in row] for query, row in found(ours).items()}
    named: dict[str, Any] = {}
    offsets: dict[str, Any] = {}
    for at, query in enumerate(outputs.queries):
        chunks = [outputs.passages.chunk(number) for number in ranked.row(at)[0].tolist()]
        scores = ranked.row(at)[1].tolist()
        pairs = list(zip(chunks, scores, strict=True))
        named[query.id] = [{"doc": one.doc, "text": one.text, "score": score, "id": one.id} for one, score in pairs]
        offsets[query.id] = [
            {"doc": one.doc, "start": one.start, "end": one.end, "score": score} for one, score in pairs
        ]
    retrievers = [with_run(garden_data, rows, name) for name, rows in zip("abc", (texts, named, offsets), strict=True)]
    for retriever in retrievers:
        launch = run(Experiment("theirs", theirs(trial, retriever), []), store=tmp_path / "s", log=False)
        (result,) = launch.results
        assert not result.uncertain
        assert result.efficiency["unmapped"] == result.efficiency["unanswered"] == 0
        for name in METRICS:
            # A text is located from its first letter to its last, without the white space of a chunk's ends.
            error = 0.01 if name == "span_iou@3" and retriever.run != "c" else 0
            assert result.scores[name] == pytest.approx(ours.results[0].scores[name], abs=error, rel=0, nan_ok=True)
    assert result.efficiency["context_tokens"] == ours.results[0].efficiency["context_tokens"]


def by_hand(query: Query, passages: Sequence[str], documents: Mapping[str, str], k: int) -> float:
    """The recall of the first passages, from their texts: each is searched for letter by letter."""
    covered: set[tuple[str, int]] = set()
    for text in passages[:k]:
        pattern = r"\s*".join(re.escape(letter) for letter in re.sub(r"[\s\u2010-]", "", text))
        for doc, content in documents.items():
            plain = re.sub("-", " ", content)
            for match in re.finditer(pattern, plain):
                covered |= {(doc, at) for at in range(*match.span())}
    shares = [
        sum((place.doc, at) in covered for at in range(place.start, place.end)) / (place.end - place.start)
        for place in (item.places[0] for item in query.evidence)
    ]
    return sum(share >= 0.5 for share in shares) / len(shares)


def test_scores_by_hand(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """Passages that are not those of any of our chunkers score as counted from their texts."""
    documents = {
        doc.id: doc.text
        for doc in outputs_of(run(Experiment("o", trial, []), store=tmp_path / "s", log=False)).data.documents
    }
    rng = np.random.default_rng(5)
    queries = outputs_of(run(Experiment("o", trial, []), store=tmp_path / "s", log=False)).queries
    rows: dict[str, Any] = {}
    for query in queries:
        row = []
        for _ in range(4):
            doc = (
                query.evidence[0].places[0].doc
                if query.evidence and rng.random() < 0.6
                else str(rng.choice(list(documents)))
            )
            start = int(rng.integers(0, len(documents[doc]) - 200))
            row.append(changed(documents[doc][start : start + int(rng.integers(100, 200))]))
        rows[query.id] = row
    launch = run(Experiment("t", theirs(trial, with_run(garden_data, rows)), []), store=tmp_path / "s", log=False)
    scores = launch.results[0].scores["recall@3"]
    expected = [by_hand(query, rows[query.id], documents, 3) if query.evidence else np.nan for query in queries]
    assert np.array_equal(scores, np.array(expected), equal_nan=True)
    assert 0 < np.nanmean(scores) < 1


def test_unmapped_passages(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """They keep their ranks, count as no evidence, and bound the scores; they are shown, cut and judged as they are."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    rows: dict[str, Any] = {query: list(row) for query, row in found(ours).items()}
    first, second, *_ = rows
    rows[first] = [NOWHERE, *rows[first]]
    rows[second] = [*rows[second][:3], NOWHERE]
    grid = {"selector": [(), (TopK(3),), (Dedup(), TokenBudget(30))]}
    experiment = Experiment("t", theirs(trial, with_run(garden_data, rows)), grid)
    launch = run(experiment, store=tmp_path / "s", log=False)
    result = launch.results[0]
    bounds = result.uncertain["recall@3"]
    before = ours.results[0].scores["recall@3"]
    assert (bounds.low[0], bounds.high[0]) == (result.scores["recall@3"][0], 1.0)
    assert result.scores["recall@3"][0] <= before[0]
    assert bounds.low[1] == bounds.high[1] == before[1]  # the fourth passage is beyond the cutoff
    assert np.array_equal(bounds.low[2:], before[2:], equal_nan=True)
    assert result.uncertain["mrr"].high[:2].tolist() == [1.0, 1.0]
    assert result.efficiency["unmapped"] == pytest.approx(2 / sum(map(len, rows.values())))
    assert result.mean("recall@3") == pytest.approx(np.nanmean(result.scores["recall@3"]))
    case = next(iter(outputs_of(launch).cases()))
    assert case.passages[0].text == NOWHERE
    (row, *_) = outputs_of(launch).rows()
    assert (row["kept"][0]["text"], row["kept"][0]["doc"][:9]) == (NOWHERE, "unmapped:")
    assert not row["kept"][0]["relevant"]
    cut = outputs_of(launch, 2).selections.kept(0)
    assert sum(passage.tokens for passage in cut) <= 30
    assert outputs_of(launch, 2).work.text(*cut[0][:3]) == NOWHERE[: cut[0].end]
    missing = [outcome for row in result.evidence_outcomes[:2] for outcome in row if outcome != "found"]
    assert set(missing) <= {"perhaps_unmapped"}


def test_queries_without_an_answer(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """Their scores are missing, never zero; above 2 % no mean is reported."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    rows: dict[str, Any] = dict(found(ours))
    queries = list(rows)
    rows[queries[0]] = "HTTP 503: try later"
    del rows[queries[1]]
    both = Experiment(
        "t",
        trial,
        [{"retriever": [BM25(depth=5)]}, {"chunker": [NoChunker()], "retriever": [with_run(garden_data, rows)]}],
    )
    launch = run(both, store=tmp_path / "s", log=False)
    before, result = launch.results
    assert np.isnan(result.scores["recall@3"][:2]).all()
    bounds = result.uncertain["recall@3"]
    assert (bounds.low[:2].tolist(), bounds.high[:2].tolist()) == ([0, 0], [1, 1])
    assert np.array_equal(result.scores["recall@3"][2:], before.scores["recall@3"][2:], equal_nan=True)
    assert bounds.withheld
    assert np.isnan(result.mean("recall@3"))
    assert result.efficiency["unanswered"] == 2
    assert result.efficiency["empty_results"] == before.efficiency["empty_results"]
    assert outputs_of(launch).scores.arrays["context_tokens"][2:].mean() == result.efficiency["context_tokens"]
    assert {outcome for row in result.evidence_outcomes[:2] for outcome in row} == {"unanswered"}
    comparison = compare(launch, on="recall@3")
    low, high = (np.nanmean(side) for side in (bounds.low, bounds.high))
    assert (comparison.rows[1].mean_min, comparison.rows[1].mean_max) == pytest.approx((low, high))
    assert any("2 of 12 queries have no answer; the mean is withheld" in note for note in comparison.warnings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chunker": Fixed(size=20)}, "chunker: passage_run returns passages of its own, which fixed cannot change"),
        ({"augmenter": Heading()}, "augmenter: passage_run returns passages of its own, which heading cannot change"),
        ({"metrics": ("precision_omega",)}, "metrics: precision_omega needs to know all chunks"),
        ({"retriever": BM25()}, "chunker: none is for retrievers of other systems, but bm25 ranks chunks"),
    ],
)
def test_what_does_not_fit(trial: Trial, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """One line before any work."""
    with pytest.raises(ConfigError, match=message):
        run(Experiment("t", theirs(trial, PassageRun("x"), **changes), []), store=tmp_path / "s", log=False)


def test_what_was_exported_scores_the_same(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """Read again as passages, and by ir-measures as a TREC run."""
    import ir_measures

    whole = Trial(**{**vars(trial), "metrics": ("recall@3", "mrr")})
    ours = run(
        Experiment("ours", whole, {"retriever": [BM25(depth=5), BM25(depth=5, k1=2.0)]}),
        store=tmp_path / "s",
        log=False,
    )
    names = export(ours, tmp_path / "out")
    assert len(names) == 5
    for result in ours.results:
        stem = next(name for name in names if name.endswith(".jsonl") and ("2.0" in name) == ("2.0" in result.name))
        add_run(garden_data, f"run{'2.0' in stem}", tmp_path / "out" / stem)
        again = theirs(whole, PassageRun(f"run{'2.0' in stem}"))
        (found_again,) = run(Experiment("t", again, []), store=tmp_path / "s", log=False).results
        for name in ("recall@3", "mrr"):
            assert np.array_equal(found_again.scores[name], result.scores[name], equal_nan=True)
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.txt")))
    trec = list(
        ir_measures.read_trec_run(str(tmp_path / "out" / next(name for name in names if name.endswith(".trec"))))
    )
    outputs = outputs_of(ours)
    first = outputs.selections.kept(0)
    assert [one.doc_id for one in trec if one.query_id == outputs.queries[0].id] == list(
        dict.fromkeys(p.doc for p in first)
    )
    by_document = {one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.R @ 1], qrels, trec)}
    for at, query in enumerate(outputs.queries):
        if query.evidence:
            docs = [passage.doc for passage in outputs.selections.kept(at)]
            assert by_document[query.id] == float(docs[0] == query.evidence[0].places[0].doc)


def test_from_the_command_line(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """A run is imported, compared with our retriever, reported and exported, and again without any work."""
    rows = found(run(Experiment("ours", trial, []), store=tmp_path / "s", log=False))
    rows[next(iter(rows))][0] = NOWHERE
    file = tmp_path / "service.jsonl"
    file.write_text("".join(json.dumps({"query": q, "passages": row, "ms": 20}) + "\n" for q, row in rows.items()))
    done = harness(tmp_path, "data", "import", "run", str(file), str(garden_data))
    assert "`retriever: {passage_run: {run: service}}`" in done.stdout
    system = "{chunker: [none], retriever: [{passage_run: {run: service}}]}"
    grid = f"grid:\n  - retriever: [{{bm25: {{depth: 5}}}}]\n  - {system}\n"
    (tmp_path / "x.yaml").write_text(FIRST.replace("data: garden", f"data: {garden_data}") + grid)
    done = harness(tmp_path, "run", "x.yaml", "--store", "s")
    assert "none · passage_run" in done.stdout
    assert "1 query may have evidence in passages that are not in the corpus" in done.stdout
    again = harness(tmp_path, "run", "x.yaml", "--store", "s")
    assert "computed: nothing" in again.stdout or "computed" not in again.stdout
    shown = harness(tmp_path, "compare", "x.yaml", "--store", "s", "--csv")
    table = list(csv.DictReader(shown.stdout.splitlines()))
    assert float(table[1]["retrieve_p99_ms"]) == 20
    assert float(table[1]["unmapped"]) > 0 == float(table[1]["unanswered"])
    harness(tmp_path, "report", "x.yaml", "--store", "s", "--out", "r.html")
    done = harness(tmp_path, "export", "x.yaml", "--store", "s", "--out", "exported")
    assert len(list((tmp_path / "exported").iterdir())) == 5
    once_more = harness(tmp_path, "data", "import", "run", str(file), str(garden_data), code=2)
    one_line(once_more, "has a run 'service' already")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"passages": []}', 'expected {"query": "…", "passages": \\[…\\]}, got no query'),
        ('{"query": "bed0-2"}', "passages: expected a list of passages, best first"),
        ('{"query": "bed0-2", "passages": [7]}', r"passages\[0\]: expected a text, or an object"),
        ('{"query": "bed0-2", "passages": [{"doc": "bed0"}]}', r"passages\[0\]: needs its text, or doc, start and end"),
        ('{"query": "bed0-2", "passages": [{"text": "a", "start": "1"}]}', r"passages\[0\].start: expected a number"),
        ('{"query": "bed0-2", "passages": [{"text": "a", "score": "1"}]}', r"passages\[0\].score: expected a number"),
        (
            '{"query": "bed0-2", "passages": [{"text": "a", "score": 1}, "b"]}',
            "passages: some have a score, others none",
        ),
        (
            '{"query": "bed0-2", "passages": [{"text": "a", "score": 1}, {"text": "b", "score": 2}]}',
            r"passages\[1\]: the score rises from 1 to 2, but passages are listed best first",
        ),
        ('{"query": "bed0-2", "passages": [], "ms": "fast"}', "ms: expected milliseconds, got 'fast'"),
        ('{"query": "bed0-2", "passages": [], "ms": -5}', "ms: expected milliseconds, got -5"),
        (
            f'{{"query": "bed0-2", "passages": [{{"text": "a", "score": {"9" * 400}}}]}}',
            r"passages\[0\].score: expected a",
        ),
        (
            '{"query": "bed0-2", "passages": []}\n{"query": "bed0-2", "passages": []}',
            "query 'bed0-2' occurs a second time",
        ),
        ('{"query": "elsewhere", "passages": []}', "has none of the queries of .*, but such as 'elsewhere'"),
    ],
)
def test_malformed_runs(line: str, message: str, garden_data: Path, tmp_path: Path) -> None:
    """One line with the file and the line of it; the data set is as before."""
    file = tmp_path / "bad.jsonl"
    file.write_text(line + "\n")
    before = (garden_data / "manifest.yaml").read_bytes()
    with pytest.raises(Exception, match=rf"^.*bad\.jsonl(:\d)?: {message}"):
        add_run(garden_data, "bad", file)
    assert (garden_data / "manifest.yaml").read_bytes() == before
    assert not (garden_data / "runs" / "bad.jsonl").exists()


def test_a_passage_that_is_returned_again(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """It keeps its rank without counting twice; what follows it does not move up."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    rows: dict[str, Any] = found(ours)
    twice = {query: [*(row[:1] * 3), *row[1:]] for query, row in rows.items()}
    launch = run(Experiment("t", theirs(trial, with_run(garden_data, twice)), []), store=tmp_path / "s", log=False)
    assert not launch.results[0].uncertain
    kept = outputs_of(launch).selections.kept(0)
    assert [passage.doc.partition(":")[0] for passage in kept[1:3]] == ["repeated", "repeated"]
    before, after = ours.results[0].scores, launch.results[0].scores
    assert np.array_equal(after["recall@3"], before["recall@1"], equal_nan=True)
    assert np.array_equal(after["recall@5"], before["recall@3"], equal_nan=True)


def test_the_place_that_has_the_evidence(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """A passage in several documents counts where the evidence is, and its next place when it is returned again."""
    text = "The seed vault keeps beans at minus eighteen degrees."
    documents = [{"id": f"d{at}", "text": f"Document {at}. {text}"} for at in range(3)]
    evidence = [{"doc": "d1", "start": 12, "end": 24, "quote": documents[1]["text"][12:24]}]
    root = make_data(documents, [{"id": "q", "text": "where?", "evidence": evidence}])
    trial = Trial(**{**vars(OURS), "data": str(root), "metrics": ("recall@1", "precision@3")})
    system = with_run(root, {"q": [text, text, text, text]})
    launch = run(Experiment("t", theirs(trial, system), []), store=tmp_path / "s", log=False)
    kept = outputs_of(launch).selections.kept(0)
    assert [passage.doc for passage in kept[:3]] == ["d1", "d0", "d2"]
    assert kept[3].doc.startswith("repeated:")
    assert launch.results[0].mean("recall@1") == 1
    assert launch.results[0].mean("precision@3") == pytest.approx(1 / 3)


def test_tokens_are_those_of_what_was_returned(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """Text around a located run uses up the budget of tokens, as it does in a prompt."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    rows: dict[str, Any] = found(ours)
    padded = {
        query: [f"Printed on page {at} of many {text}" for at, text in enumerate(row)] for query, row in rows.items()
    }
    launch = run(Experiment("t", theirs(trial, with_run(garden_data, padded)), []), store=tmp_path / "s", log=False)
    plain, more = outputs_of(ours).selections.kept(0), outputs_of(launch).selections.kept(0)
    assert [one.doc for one in plain] == [one.doc for one in more]
    assert [one.tokens for one in more] == [one.tokens + 6 for one in plain]


def test_what_is_not_where_the_system_says(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """Is searched for in all documents."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    rows: dict[str, Any] = {
        query: [{"text": text, "doc": "bed5" if at % 2 else "unknown"} for at, text in enumerate(row)]
        for query, row in found(ours).items()
    }
    launch = run(Experiment("t", theirs(trial, with_run(garden_data, rows)), []), store=tmp_path / "s", log=False)
    assert launch.results[0].efficiency["unmapped"] == 0
    assert np.array_equal(launch.results[0].scores["recall@3"], ours.results[0].scores["recall@3"], equal_nan=True)


def test_repeated_passages_are_no_documents_of_an_export(trial: Trial, garden_data: Path, tmp_path: Path) -> None:
    """A TREC run ranks each document once; passages that are not in the corpus keep their ranks."""
    ours = run(Experiment("ours", trial, []), store=tmp_path / "s", log=False)
    rows: dict[str, Any] = {query: [*row[:1], *row[:1], NOWHERE, *row[1:]] for query, row in found(ours).items()}
    launch = run(Experiment("t", theirs(trial, with_run(garden_data, rows)), []), store=tmp_path / "s", log=False)
    names = export(launch, tmp_path / "out")
    lines = (tmp_path / "out" / next(name for name in names if name.endswith(".trec"))).read_text().splitlines()
    assert not any("repeated:" in line for line in lines)
    assert sum("unmapped:" in line for line in lines) == sum(map(bool, rows.values()))
    content = (tmp_path / "out" / next(name for name in names if name.endswith(".jsonl"))).read_text()
    assert "repeated:" not in content
    assert "unmapped:" not in content
