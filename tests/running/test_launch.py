"""Launches end to end, through the command line: reproducible, resumable, concurrent and cached."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

EXPERIMENT = """
name: garden
question: Which chunks?
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
embedder: {hashing: {dimensions: 64}}
retriever: dense
selector: [dedup, {top_k: {k: 6}}, {token_budget: {tokens: 100}}]
metrics: [recall@3, recall@50t, ndcg@5, mrr, map, precision@3, span_iou@3, span_recall@3, precision_omega, chroma_iou@3]
grid:
  chunker: [{fixed: {size: 20}}, {recursive: {size: 30}}, {own.py:Lines: {}}]
  retriever: [dense, bm25, hybrid]
compare: {baseline: {chunker: fixed}, on: recall@50t}
"""
OWN = '''
import re
from dataclasses import dataclass
from harness import Chunker, Document, Spans

@dataclass(frozen=True)
class Lines(Chunker):
    """Sentences, one a chunk."""

    def split(self, doc: Document) -> Spans:
        return [match.span() for match in re.finditer(r"[^.]+\\.?", doc.text)]
'''
HARNESS = str(Path(sys.executable).parent / "harness")


@pytest.fixture
def project(garden_data: Path, tmp_path: Path) -> Path:
    """A folder with an experiment, a custom chunker and a data set."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/garden.yaml").write_text(EXPERIMENT)
    (tmp_path / "experiments/own.py").write_text(OWN)
    return tmp_path


def harness(project: Path, *arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [HARNESS, *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done


def score_files(store: Path) -> dict[str, str]:
    """The bytes of every score artifact, by address."""
    found = {}
    for path in store.glob("objects/*/*/key.json"):
        if json.loads(path.read_text())["key"]["stage"] == "score":
            found[path.parent.name] = hashlib.sha256((path.parent / "arrays.npz").read_bytes()).hexdigest()
    return found


def run(project: Path, store: str, *more: str) -> str:
    return harness(project, "run", "experiments/garden.yaml", "--store", store, "--no-mlflow", *more).stdout


def test_two_stores_and_two_workers_give_the_same_bytes(project: Path) -> None:
    """Per-query scores are byte-identical in a fresh store, and with one or two workers."""
    run(project, "one")
    run(project, "two", "--workers", "2")
    run(project, "three", "--on", "concurrent.futures:ThreadPoolExecutor", "--workers", "3")
    first = score_files(project / "one")
    assert len(first) == 9
    assert first == score_files(project / "two") == score_files(project / "three")


def test_a_second_run_does_no_stage_work(project: Path) -> None:
    """Nine trials share three chunkings, three indexes and their embeddings; afterwards everything is stored."""
    out = run(project, "s")
    assert "1 tokenize, 3 chunk" in out
    stages = Counter(
        json.loads(path.read_text())["key"]["stage"] for path in (project / "s").glob("objects/*/*/key.json")
    )
    data = {"documents": 1, "document_part": 1, "evidence": 1}
    assert stages == {**data, "tokenize": 1, "chunk": 3, "index": 3, "retrieve": 9, "select": 9, "score": 9, "time": 1}
    assert "computed: nothing" in run(project, "s")


def test_only_what_changed_is_recomputed(project: Path) -> None:
    """A new selector repeats only selection and scoring; an edited chunker affects only its own trials."""
    run(project, "s")
    file = project / "experiments/garden.yaml"
    file.write_text(EXPERIMENT.replace("k: 6", "k: 5"))
    assert "computed: 9 select, 9 score\n" in run(project, "s")
    file.write_text(EXPERIMENT)
    own = project / "experiments/own.py"
    own.write_text(OWN + "# edited\n")
    out = run(project, "s")
    assert "computed: 1 chunk, 3 retrieve, 1 index, 3 select, 3 score\n" in out


def test_a_run_killed_ten_times_gives_the_same_scores(project: Path) -> None:
    """SIGKILL after a growing number of artifacts is stored; none of them is ever computed again."""
    run(project, "calm")
    store = project / "storm"
    seen: dict[Path, int] = {}
    killed = 0
    for min_value in (1, 2, 4, 6, 9, 12, 16, 20, 25, 30):
        process = subprocess.Popen(
            [HARNESS, "run", "experiments/garden.yaml", "--store", "storm", "--no-mlflow"],
            cwd=project,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and len(list(store.glob("objects/*/*/key.json"))) < min_value:
            pass
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
        for path, made in seen.items():
            assert path.stat().st_mtime_ns == made, f"{path} was made twice"
        seen = {path: path.stat().st_mtime_ns for path in store.glob("objects/*/*/key.json")}
    assert killed == 10
    run(project, "storm")
    assert all(path.stat().st_mtime_ns == made for path, made in seen.items())
    assert score_files(store) == score_files(project / "calm")


POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

def pool(workers):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
"""


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_thirty_random_moments(project: Path, workers: int) -> None:
    """SIGKILL at any time of a run, with worker processes that start at once; no stage is made twice.

    When a run is done before its moment has come, the next one begins with an empty store.
    """
    (project / "own_pool.py").write_text(POOL)
    run(project, "calm")
    command = [HARNESS, "run", "experiments/garden.yaml", "--no-mlflow", "--workers", str(workers)]
    command += ["--on", "own_pool:pool"] if workers > 1 else []
    environment = {**os.environ, "PYTHONPATH": str(project)}
    moments, killed, stores, finished = random.Random(workers), 0, 1, 0
    seen: dict[Path, int] = {}
    while killed < 30:
        store = project / f"storm-{stores}"
        process = subprocess.Popen(
            [*command, "--store", store.name],
            cwd=project,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.wait(timeout=moments.uniform(0.2, 5.0)) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
        assert all(path.stat().st_mtime_ns == made for path, made in seen.items()), "a stage was made twice"
        seen |= {path: path.stat().st_mtime_ns for path in store.glob("objects/*/*/key.json")}
        if process.returncode == 0:
            assert score_files(store) == score_files(project / "calm")
            stores, finished = stores + 1, finished + 1
    run(project, f"storm-{stores}")
    assert score_files(project / f"storm-{stores}") == score_files(project / "calm")
    assert finished


def test_two_launches_at_once(project: Path, tracking: str) -> None:
    """On one store and one MLflow database, both succeed and no trial is logged twice."""
    command = [HARNESS, "run", "experiments/garden.yaml", "--store", "s", "--tracking", tracking]
    both = [
        subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    runs = logged(tracking)
    assert Counter(run.data.tags["kind"] for run in runs) == {"trial": 9, "launch": 2}
    assert len({run.data.tags["fingerprint"] for run in runs if run.data.tags["kind"] == "trial"}) == 9
    assert all(run.info.status == "FINISHED" for run in runs)


def logged(tracking: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking)
    experiment = client.get_experiment_by_name("garden")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


def test_a_damaged_store_is_rebuilt_and_reported(project: Path) -> None:
    """If every artifact and the vectors are truncated, a warning is printed and the scores are the same."""
    run(project, "s")
    before = score_files(project / "s")
    for path in (project / "s").glob("objects/*/*/arrays.npz"):
        path.write_bytes(path.read_bytes()[:-7])
    for path in (project / "s/vectors").glob("*/*.arrow"):
        path.write_bytes(path.read_bytes()[:300])
    out = run(project, "s")
    assert "damaged files of the store were set aside and rebuilt" in " ".join(out.split())
    assert score_files(project / "s") == before


def test_a_store_that_cannot_be_written_is_an_error(project: Path) -> None:
    """A file in place of the folder gives one line and exit code 2."""
    (project / "s").write_text("")
    done = harness(project, "run", "experiments/garden.yaml", "--store", "s", "--no-mlflow", code=2)
    assert done.stderr.startswith("harness: store ")
    assert done.stderr.count("\n") == 1


def test_accesses_to_the_locked_set_are_explicit_and_counted(project: Path, tracking: str) -> None:
    """`queries: test` is an error; `--final` scores the set and counts the access."""
    file = project / "experiments/garden.yaml"
    file.write_text(EXPERIMENT.replace("data: garden", "data: garden\nqueries: test"))
    assert "--final" in harness(project, "run", "experiments/garden.yaml", "--no-mlflow", code=2).stderr
    file.write_text(EXPERIMENT)
    early = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--final", code=2).stderr
    assert "--final: 9 of 9 trials have not run on 'validation'; run the experiment first" in early
    harness(project, "run", "experiments/garden.yaml", "--no-mlflow")
    for _ in range(2):
        harness(project, "run", "experiments/garden.yaml", "--tracking", tracking, "--final")
    launches = [run.data.tags for run in logged(tracking) if run.data.tags["kind"] == "launch"]
    assert sorted(tags["test_set_accesses"] for tags in launches) == ["1", "2"]


def test_plan_counts_and_does_not_embed(project: Path) -> None:
    """It counts the texts to embed; after a run there are none."""
    planned = harness(project, "plan", "experiments/garden.yaml", "--store", "s").stdout
    assert "9 trials, 0 of them stored" in planned
    assert "to embed with hashing: " in planned
    assert not (project / "s/vectors").exists()
    count = int(planned.split("to embed with hashing: ")[1].split()[0])
    assert f"{count} embed" in run(project, "s")
    after = harness(project, "plan", "experiments/garden.yaml", "--store", "s").stdout
    assert "9 trials, 9 of them stored" in after
    assert "nothing to embed" in after


def test_compare_by_file_and_by_name(project: Path) -> None:
    """Both print the same table; `--json` prints JSON; unknown names give exit code 2."""
    missing = harness(project, "compare", "experiments/garden.yaml", "--store", "s", code=2).stderr
    assert "9 of 9 trials of 'garden' have not run" in missing
    run(project, "s")
    by_file = harness(project, "compare", "experiments/garden.yaml", "--store", "s").stdout
    by_name = harness(project, "compare", "garden", "--store", "s").stdout
    assert by_file == by_name
    assert "13 queries" not in by_file
    assert "1 query without evidence" in by_file
    found = json.loads(harness(project, "compare", "garden", "--store", "s", "--json", "--metric", "mrr").stdout)
    assert found["metric"] == "mrr"
    assert [row["verdict"] for row in found["rows"]].count("baseline") == 1
    output = harness(project, "compare", "gardn", "--store", "s", code=2).stderr
    assert "Did you mean 'garden'" in output
    assert (
        "was not scored" in harness(project, "compare", "garden", "--store", "s", "--metric", "recall@7", code=2).stderr
    )
    assert (
        "no trial has chunker: sentence"
        in harness(project, "compare", "garden", "--store", "s", "--baseline", "chunker=sentence", code=2).stderr
    )


def test_unusual_corpora_give_results(project: Path, make_data: Any) -> None:
    """Empty documents and queries, a megabyte on one line, CRLF and NUL give numbers, not tracebacks."""
    quote = "Keep the lid on."
    text = f"\x00 {quote}\r\n" + "word " * 200_000
    documents = [{"id": "d", "text": text}, {"id": "empty", "text": ""}, {"id": "blank", "text": " \r\n\t"}]
    queries = [
        {"id": "1", "text": "lid?", "evidence": [{"doc": "d", "start": 2, "end": 2 + len(quote), "quote": quote}]},
        {"id": "2", "text": "", "evidence": [{"doc": "empty"}]},
    ]
    make_data(documents, queries, name="odd")
    (project / "experiments/odd.yaml").write_text(
        EXPERIMENT.replace("data: garden", "data: odd").replace("size: 20", "size: 400")
    )
    out = harness(project, "run", "experiments/odd.yaml", "--store", "s", "--no-mlflow").stdout
    assert "2 queries" in out
    assert "no intervals: 2 clusters" in " ".join(out.split())


def test_a_chunker_that_returns_invalid_spans_is_an_error(project: Path) -> None:
    """One line names the document and the span."""
    (project / "experiments/own.py").write_text(OWN.replace("match.span() for match", "(0, 10**6) for match"))
    done = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--workers", "2", code=2)
    assert "chunker lines: document 'bed0'" in done.stderr
    assert "0-1000000" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_error_of_a_custom_component_shows_its_traceback(project: Path, workers: str) -> None:
    """One line names component and document; the traceback begins in the component's file, also from a worker."""
    (project / "experiments/own.py").write_text(OWN.replace("return [", "raise RuntimeError('oops')\n        return ["))
    done = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--workers", workers, code=2)
    *_, first = [line for line in done.stderr.splitlines() if line.startswith("harness: ")]
    assert "chunker lines: document 'bed0': RuntimeError: oops (own.py:" in first
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert len(frames) == 1
    assert "own.py" in frames[0]
    assert done.stderr.endswith("RuntimeError: oops\n")


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """Mount a file system of a given size; skip the test if mounting is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("this machine does not let the test mount a small file system")
        mounted.append(place)
        return place

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing(project: Path, small_disk: Any) -> None:
    """A full store gives one line and exit code 2; with more space the run resumes and gives the same scores."""
    run(project, "calm")
    disk = small_disk("size=150k")
    done = harness(project, "run", "experiments/garden.yaml", "--store", str(disk / "s"), "--no-mlflow", code=2)
    assert "the disk is full" in done.stderr
    assert done.stderr.count("\n") == 1
    subprocess.run(["mount", "-o", "remount,size=30m", str(disk)], check=True)
    run(project, str(disk / "s"))
    assert score_files(disk / "s") == score_files(project / "calm")


def test_mlflow_on_a_full_or_read_only_disk_is_an_error(project: Path, small_disk: Any, tracking: str) -> None:
    """Computed results are kept; the message names the remedy."""
    disk = small_disk("size=1300k")
    database = Path(tracking.removeprefix("sqlite:///"))
    (disk / "m.db").write_bytes(database.read_bytes())
    arguments = ["run", "experiments/garden.yaml", "--store", "s", "--tracking", f"sqlite:///{disk / 'm.db'}"]
    full = harness(project, *arguments, code=2)
    assert "--no-mlflow" in full.stderr
    assert full.stderr.count("\n") == 1
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert "--no-mlflow" in harness(project, *arguments, code=2).stderr
    assert len(score_files(project / "s")) == 9 or "computed: nothing" not in run(project, "s")


def test_a_read_only_store_is_an_error(project: Path, small_disk: Any) -> None:
    """One line, exit code 2."""
    disk = small_disk("ro")
    done = harness(project, "run", "experiments/garden.yaml", "--store", str(disk / "s"), "--no-mlflow", code=2)
    assert "the file system is read-only" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_baseline_is_reported_before_any_work(project: Path) -> None:
    """The run stops before anything is stored."""
    file = project / "experiments/garden.yaml"
    file.write_text(EXPERIMENT.replace("baseline: {chunker: fixed}", "baseline: {chunker: fxed}"))
    done = harness(project, "run", "experiments/garden.yaml", "--store", "s", "--no-mlflow", code=2)
    assert "no trial has chunker: fxed" in done.stderr
    assert not (project / "s/objects").exists()


def test_a_process_rereads_data_that_changed(project: Path) -> None:
    """Two runs in one process, with the queries edited and pinned between them."""
    (project / "go.py").write_text(
        "import json, subprocess, sys\nfrom pathlib import Path\nfrom harness import read_experiment, run\n"
        "def go(): return run(read_experiment(Path('experiments/garden.yaml')), store=Path('s'), log=False)\n"
        "first = go()\nfile = Path('datasets/garden/queries/validation.jsonl')\n"
        "file.write_text(''.join(file.read_text().splitlines(keepends=True)[:5]))\n"
        "subprocess.run([sys.argv[1], 'data', 'pin', 'garden'], check=True, capture_output=True)\n"
        "second = go()\nprint(len(first.results[0].queries), len(second.results[0].queries), len(go().work))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "go.py", HARNESS], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["13", "5", "0"]


def test_a_script_that_defines_its_component_runs_once(project: Path) -> None:
    """The class is taken from the running script, without executing it again."""
    (project / "script.py").write_text(
        OWN + "\nfrom harness import Experiment, Trial, run\nfrom harness.components.retrievers import BM25\n"
        "print('begin')\n"
        "launch = run(Experiment('s', Trial('garden', Lines(), BM25(), tokenizer='words')), log=False)\n"
        "print(launch.results[0].params['chunker'])\n"
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["begin", "lines"]


def test_locked_set_accesses_are_counted_without_mlflow(project: Path, tracking: str) -> None:
    """Final launches that were not logged count too."""
    harness(project, "run", "experiments/garden.yaml", "--no-mlflow")
    for _ in range(2):
        harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--final")
    harness(project, "run", "experiments/garden.yaml", "--tracking", tracking, "--final")
    (launch,) = (run.data.tags for run in logged(tracking) if run.data.tags["kind"] == "launch")
    assert launch["test_set_accesses"] == "3"


def test_selectors_must_account_for_every_hit(project: Path) -> None:
    """A hit that is neither kept nor dropped would be missing from the loss attribution."""
    own = project / "experiments/own.py"
    own.write_text(
        OWN + "\nfrom harness import Outcome, Selector\n\n@dataclass(frozen=True)\nclass Silent(Selector):\n"
        "    def select(self, query, hits):\n        return Outcome(list(hits[:1]), [])\n"
    )
    file = project / "experiments/garden.yaml"
    file.write_text(EXPERIMENT.replace("selector: [dedup,", "selector: [own.py:Silent,"))
    done = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", code=2)
    assert "selector silent: query 'bed0-2': bed" in done.stderr
    assert "is neither kept nor dropped" in done.stderr


def test_a_selector_must_not_return_a_hit_twice(project: Path) -> None:
    """The number of returned hits is right, but some are missing and one is repeated."""
    own = project / "experiments/own.py"
    own.write_text(
        OWN + "\nfrom harness import Drop, Outcome, Selector\n\n@dataclass(frozen=True)\nclass Wrong(Selector):\n"
        "    def select(self, query, hits):\n"
        "        half = len(hits) // 2\n"
        "        return Outcome(list(hits[:half]), [Drop(hits[0], 'x') for _ in hits[half:]])\n"
    )
    file = project / "experiments/garden.yaml"
    file.write_text(EXPERIMENT.replace("selector: [dedup,", "selector: [own.py:Wrong,"))
    assert "selector wrong" in harness(project, "run", "experiments/garden.yaml", "--no-mlflow", code=2).stderr


def test_a_relative_database_is_in_the_working_folder(project: Path, tracking: str) -> None:
    """A launch after a final one still reports the number of accesses to the locked set."""
    arguments = ["run", "experiments/garden.yaml", "--tracking", "sqlite:///mlflow.db"]
    harness(project, "run", "experiments/garden.yaml", "--no-mlflow")
    harness(project, *arguments, "--final")
    harness(project, *arguments)
    launches = [run.data.tags for run in logged(tracking) if run.data.tags["kind"] == "launch"]
    assert [(tags["final"], tags["test_set_accesses"]) for tags in launches] == [("false", "1"), ("true", "1")]


def test_the_finalists(project: Path) -> None:
    """The chosen trial and the baseline keep their names; `--choose` picks another trial."""
    harness(project, "run", "experiments/garden.yaml", "--no-mlflow")
    table = json.loads(harness(project, "compare", "experiments/garden.yaml", "--json").stdout)
    best, baseline = table["best"]["name"], table["baseline"]
    output = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--final").stdout
    assert "recall@50t on the locked query set, accessed once:" in output
    assert f"chosen '{best}': validation {table['best']['mean']:.3f}" in output
    assert f"baseline '{baseline}': validation" in output
    final = json.loads(harness(project, "compare", "garden", "--final", "--json").stdout)
    assert [row["name"] for row in final["rows"]] == [baseline, best]
    # A name refers to the newest launch on validation: the locked set must not be used to compare nine trials.
    assert len(json.loads(harness(project, "compare", "garden", "--json").stdout)["rows"]) == 9
    chosen = ["--choose", "retriever=hybrid", "--choose", "chunker=lines"]
    again = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--final", *chosen).stdout
    assert "accessed 2 times" in again
    assert "chosen 'lines · hybrid': validation" in again
    wrong = harness(project, "run", "experiments/garden.yaml", "--final", "--choose", "retriever=x", code=2).stderr
    assert "choose: no trial has retriever: x" in wrong
    file, (chunker, retriever) = project / "experiments/garden.yaml", best.split(" · ")
    before = file.read_text()
    file.write_text(before.replace("{chunker: fixed}", f"{{chunker: {chunker}, retriever: {retriever}}}"))
    refused = harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--final", code=2).stderr
    assert f"the trial with the highest mean on 'validation' is the baseline '{best}', so there is nothing" in refused
    accesses = list((project / ".harness/openings").glob("*.txt"))
    assert [len(path.read_text().splitlines()) for path in accesses] == [2]
    file.write_text(before)
    report = harness(project, "report", "experiments/garden.yaml", "--out", "r.html").stdout
    assert "r.html" in report
    assert "corrected for selection" in (project / "r.html").read_text(encoding="utf-8")
    # Neither a changed locked set nor an explicit choice before any validation is an error.
    locked = project / "datasets/garden/queries/test.jsonl"
    locked.write_text(locked.read_text() + locked.read_text().replace("locked-1", "locked-2"))
    harness(project, "data", "pin", "garden")
    harness(project, "report", "experiments/garden.yaml", "--out", "r.html")
    assert "Locked test set" not in (project / "r.html").read_text(encoding="utf-8")
    harness(project, "run", "experiments/garden.yaml", "--no-mlflow", "--final", "--store", "new", *chosen)
