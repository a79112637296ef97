"""Queries written by a model: a local server, good and bad answers, the review sheet, the budget."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of
from openai_server import Asked, Server

from harness.components.text_analysis import Analyzer
from harness.data.checks import check_dataset
from harness.data.dataset import load_dataset
from harness.data.manifest import read_manifest
from harness.data.synthesis.generate import copies, lexical_overlap

HARNESS = str(Path(sys.executable).parent / "harness")

KEPT = re.compile(r"(q\d\d): a question (answered by one|answered only by|of the kind)")


def sentences(text: str) -> list[str]:
    return re.findall(r"[A-Z][^.]*\.", text)


class Model:
    """A model that writes a question about every third sentence, from the first three words of the sentence."""

    def __init__(self) -> None:
        self.change: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda slot, entry: entry
        self.answered = {"yes": "yes", "no": "no"}

    def __call__(self, asked: Asked) -> Any:
        if asked.slots == ["verdict"]:
            unknown = "price" in asked.question
            return {"verdict": {"why": "seen", "answered": self.answered["no" if unknown else "yes"]}}
        lines = sentences(asked.fenced["document"])
        return {
            slot: self.change(slot, self._entry(kind, lines[3 * at : 3 * at + 3]))
            for at, (slot, kind) in enumerate(KEPT.findall(asked.user))
        }

    @staticmethod
    def _entry(kind: str, lines: list[str]) -> dict[str, Any]:
        subject = " ".join(lines[0].split()[:3])
        if kind == "of the kind":
            return {"question": f"Whatever might the price of {subject} be nowadays?", "answer": "", "quotes": []}
        if kind == "answered only by":
            other = " ".join(lines[2].split()[:3])
            question = f"Thirstier plant, comparing both: {subject} or {other}?"
            return {"question": question, "answer": "the second", "quotes": [lines[0], lines[2]]}
        return {"question": f"Daily water for my {subject}?", "answer": "some", "quotes": [lines[1]]}


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[Server]:
    with Server(model) as made:
        yield made


def harness(server: Server, folder: Path, *arguments: str, code: int = 0) -> str:
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "any",
        "OPENAI_BASE_URL": server.url,
        "HARNESS_STORE": str(folder / "store"),
    }
    done = subprocess.run(
        [HARNESS, "data", *arguments], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def records(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "queries/synthetic.jsonl").read_text().splitlines()]


def test_generate_review_and_load(garden_data: Path, tmp_path: Path, server: Server) -> None:
    """Queries are checked, marked, and written with exact spans; repeating is free; the sheet keeps and drops them."""
    output = harness(server, tmp_path, "generate", "garden", "--model", "m", "--count", "10", "--several", "0.3",
                   "--unanswerable", "0.2")  # fmt: skip
    assert "10 kept: query set 'synthetic' of garden, marked as synthetic" in output
    assert "questions to write: 3 calls" in output
    data = load_dataset(garden_data, "synthetic")
    kinds = [query.metadata["type"] for query in data.query_set.queries]
    assert sorted(kinds) == ["multi_evidence"] * 3 + ["no_answer"] * 2 + ["single_fact"] * 5
    for query, kind in zip(data.query_set.queries, kinds, strict=True):
        assert len(query.evidence) == {"multi_evidence": 2, "no_answer": 0, "single_fact": 1}[kind]
        assert query.metadata["synthetic"]["model"] == "m"
        assert not query.metadata["synthetic"]["reviewed"]
        for item in query.evidence:
            assert text_of(data, item.places[0]) in sentences(data.by_id[item.places[0].doc].text)
    assert read_manifest(garden_data).queries["synthetic"].synthetic
    assert [finding for finding in check_dataset(garden_data) if finding.level == "error"] == []

    before, calls = records(garden_data), len(server.calls)
    arguments = ("generate", "garden", "--model", "m", "--count", "10", "--several", "0.3", "--unanswerable", "0.2")
    assert "contains generated queries; --replace overwrites it" in harness(server, tmp_path, *arguments, code=2)
    again = harness(server, tmp_path, *arguments, "--replace")
    assert (records(garden_data), len(server.calls)) == (before, calls)
    assert "questions to write" not in again

    sheet = tmp_path / "synthetic-review.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [record["id"] for record in before]
    assert all("⟦" in row["context"] for row in rows if row["evidence"])
    for row, verdict in zip(rows, ("keep", "drop", "Keep"), strict=False):
        row["verdict"] = verdict
    rows[2]["question"] = "Something else?"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    output = harness(server, tmp_path, "review", "garden", str(sheet))
    assert "2 kept (1 changed), 1 dropped, 7 without verdict" in output
    after = records(garden_data)
    assert [record["id"] for record in after] == [record["id"] for record in before if record["id"] != "s0002"]
    assert after[1]["text"] == "Something else?"
    assert [record["metadata"]["synthetic"]["reviewed"] for record in after] == [True, True, *[False] * 7]
    assert len(load_dataset(garden_data, "synthetic").query_set.queries) == 9
    refused = harness(server, tmp_path, "generate", "garden", "--model", "m", "--replace", code=2)
    assert "contains reviewed queries; choose another name" in refused
    again = harness(server, tmp_path, "review", "garden", str(sheet))
    assert "2 kept (0 changed), 0 dropped, 7 without verdict" in again
    refused = harness(
        server, tmp_path, "generate", "garden", "--model", "m", "--set", "other", "--sheet", str(sheet), code=2
    )
    assert "exists, perhaps with verdicts" in refused
    corpus = ("--set", "other", "--sheet", str(garden_data / "corpus.jsonl"), "--replace")
    refused = harness(server, tmp_path, "generate", "garden", "--model", "m", *corpus, code=2)
    assert "exists and is not a review sheet" in refused


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "quote not there": ({"quotes": ["This sentence stands nowhere."]}, "evidence_unverified"),
    "quote changed": ({"quotes": ["row 0-0 grows beside basil"]}, "evidence_unverified"),
    "quote too short": ({"quotes": ["grows"]}, "evidence_unverified"),
    "no quote": ({"quotes": []}, "evidence_unverified"),
    "a number from nowhere": ({"answer": "4711 litres"}, "evidence_unverified"),
    "no question": ({"question": "Water it daily."}, "schema"),
    "leaning on the text": ({"question": "What does the passage say?"}, "schema"),
    "no list": ({"quotes": "x"}, "schema"),
}


@pytest.mark.parametrize("bad", BAD)
def test_unusable_questions_are_dropped_and_counted(
    garden_data: Path, tmp_path: Path, server: Server, model: Model, bad: str
) -> None:
    """In every round; nothing is written if no query is left."""
    changes, kind = BAD[bad]
    model.change = lambda slot, entry: {**entry, **changes}
    arguments = ("generate", "garden", "--model", "m", "--count", "2", "--several", "0", "--unanswerable", "0")
    output = harness(server, tmp_path, *arguments, code=2)
    assert f"6 dropped: not usable as written ({kind})" in output
    assert "synthetic" not in read_manifest(garden_data).queries


def test_trivial_and_repeated_questions(garden_data: Path, tmp_path: Path, server: Server, model: Model) -> None:
    """A question in the words of its evidence, and one that repeats a query written by people."""
    first = json.loads((garden_data / "queries/validation.jsonl").read_text().splitlines()[0])["text"]
    questions = {"q02": None, "q03": first}

    def change(slot: str, entry: dict[str, Any]) -> dict[str, Any]:
        if slot == "q02":
            return {**entry, "question": f"{entry['quotes'][0].rstrip('.')}?"}
        return {**entry, "question": questions.get(slot) or entry["question"]}

    model.change = change
    arguments = ("generate", "garden", "--model", "m", "--count", "4", "--several", "0", "--unanswerable", "0")
    output = harness(server, tmp_path, *arguments)
    assert "dropped: trivially lexical: it repeats the words of its evidence" in output
    assert "dropped: asks nearly the same as another question" in output
    assert first not in [record["text"] for record in records(garden_data)]


def test_answers_are_checked(garden_data: Path, tmp_path: Path, server: Server, model: Model) -> None:
    """Questions that their evidence does not answer, and unanswerable ones with an answer, are dropped."""
    model.answered = {"yes": "partly", "no": "yes"}
    output = harness(
        server, tmp_path, "generate", "garden", "--model", "m", "--count", "4", "--unanswerable", "0.5", code=2
    )
    assert "dropped: not answered by its own evidence" in output
    assert "dropped: meant to have no answer, but the corpus has one" in output
    assert "no query is left; nothing was written" in output
    assert "synthetic" not in read_manifest(garden_data).queries


def test_budget_and_offline(garden_data: Path, tmp_path: Path, server: Server) -> None:
    """No call is sent beyond the budget or offline."""
    arguments = ("generate", "garden", "--model", "m", "--count", "4")
    output = harness(server, tmp_path, *arguments, "--offline", code=2)
    assert "dropped: not usable as written (offline)" in output
    output = harness(server, tmp_path, *arguments, "--budget", "0", "--price", "1,1", code=2)
    assert "dropped: not usable as written (budget)" in output
    assert server.calls == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--count", "0"], "--count 0: expected at least 1"),
        (["--several", "1.5"], "--several 1.5: expected a fraction from 0 to 1"),
        (["--several", "0.8", "--unanswerable", "0.3"], "add up to more than 1"),
        (["--set", "validation"], "--set validation: contains queries written by people"),
        (["--set", "../x"], "expected a name of letters"),
        (["--base-url", "nonsense"], "base_url: is not an address"),
    ],
)
def test_wrong_usage(garden_data: Path, tmp_path: Path, server: Server, arguments: list[str], what: str) -> None:
    """One line of error, and no call."""
    assert what in harness(server, tmp_path, "generate", "garden", "--model", "m", *arguments, code=2)
    assert server.asked == []


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("a,b\n1,2\n", "sheet.csv:1: no column answer, id, question, verdict"),
        ("verdict,question,answer,id\nmaybe,x?,,s0001\n", "sheet.csv:2: verdict: expected keep, drop or nothing"),
        ("verdict,question,answer,id\nkeep, ,,s0001\n", "sheet.csv:2: question: is empty"),
        ("verdict,question,answer,id\nkeep,x?,,zz\n", "sheet.csv:2: id 'zz' is not a query of the set"),
        ("verdict,question,answer,id\ndrop,x?,,s0001\ndrop,x?,,s0001\n", "sheet.csv:3: id 's0001' occurs twice"),
        ("verdict,question,answer,id\ndrop,x?,,s0001\n", "drops every query"),
    ],
)
def test_errors_of_a_sheet(garden_data: Path, tmp_path: Path, server: Server, content: str, what: str) -> None:
    """One line that names file and line; the set stays unchanged."""
    harness(server, tmp_path, "generate", "garden", "--model", "m", "--count", "1", "--unanswerable", "0")
    before = records(garden_data)
    (tmp_path / "sheet.csv").write_text(content)
    assert what in harness(server, tmp_path, "review", "garden", "sheet.csv", code=2)
    assert records(garden_data) == before


def test_the_sheet_contains_no_formula(garden_data: Path, tmp_path: Path, server: Server, model: Model) -> None:
    """A cell that a spreadsheet would evaluate gets an apostrophe, which is removed when the sheet is applied."""
    model.change = lambda slot, entry: {**entry, "question": "=1+1 is what in my garden?", "answer": "-some"}
    harness(server, tmp_path, "generate", "garden", "--model", "m", "--count", "1", "--unanswerable", "0")
    sheet = tmp_path / "synthetic-review.csv"
    text = sheet.read_text(encoding="utf-8-sig")
    assert "\n,'=1+1 is what" in text
    sheet.write_text(text.replace("\n,'=1", "\nkeep,'=1"), encoding="utf-8")
    harness(server, tmp_path, "review", "garden", str(sheet))
    assert [(one["text"], one["answer"]) for one in records(garden_data)] == [("=1+1 is what in my garden?", "-some")]


def test_overlap_by_hand() -> None:
    """Salt and water of {salt, water, boil}; six consecutive words are a copy, five are not."""
    stems = Analyzer("porter", "lucene")
    assert lexical_overlap("What salted water boils?", ["Salt the water."], stems) == pytest.approx(2 / 3)
    assert lexical_overlap("Who?", ["Salt"], stems) == 0
    assert copies("Is it so that you stir the pot twice a day?", ["First you stir the pot twice a day, then rest."])
    assert not copies("Why would I stir the pot twice a week?", ["You stir the pot twice a day."])


def test_synthetic_sets_are_marked_everywhere(garden_data: Path, tmp_path: Path, tracking: str) -> None:
    """In `data show`, the launch, the comparison, the report, and MLflow."""
    from mlflow import MlflowClient

    from harness import Experiment, Trial, run
    from harness.components.chunkers import Fixed
    from harness.components.retrievers import BM25
    from harness.components.selectors import TopK
    from harness.data.write import write_set
    from reports import compare, report

    lines = (garden_data / "queries/validation.jsonl").read_text().splitlines()[:6]
    made = [json.loads(line) | {"metadata": {"synthetic": {"model": "m", "reviewed": False}}} for line in lines]
    write_set(read_manifest(garden_data), "synthetic", made, synthetic=True)
    base = Trial(
        str(garden_data), Fixed(size=16), BM25(), queries="synthetic", selector=(TopK(k=5),), tokenizer="words"
    )
    launch = run(Experiment("made", base, {}), store=tmp_path / "store", tracking=tracking)
    message = "synthetic: the queries of 'synthetic' were written by a language model"
    assert message in launch.warnings
    assert message in compare(launch).warnings
    assert "synthetic, written by a language model, 0 of them reviewed by people: 6 of" in report(launch).html
    client = MlflowClient(tracking)
    experiment = client.get_experiment_by_name("made")
    assert experiment
    (trial,) = client.search_runs([experiment.experiment_id], "tags.kind = 'trial'")
    (whole,) = client.search_runs([experiment.experiment_id], "tags.kind = 'launch'")
    assert trial.data.tags["synthetic"] == whole.data.tags["synthetic"] == "true"
    shown = subprocess.run([HARNESS, "data", "show", str(garden_data)], capture_output=True, text=True, check=True)
    assert "synthetic (synthetic, 0 reviewed): 6 queries" in shown.stdout
