"""The examples in README and docs work as shown."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(?P<kind>\w+)\n(?P<code>.*?)```", re.DOTALL)


def blocks(file: str, kind: str) -> list[str]:
    return [match["code"] for match in BLOCK.finditer((ROOT / file).read_text()) if match["kind"] == kind]


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unchanged, except for a faster embedder and a separate MLflow store."""
    code = next(block for block in blocks("docs/python.md", "python") if "launch = run(" in block)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 15
    code = code.replace("import Local", "import Hashing").replace('Local("all-MiniLM-L6-v2")', "Hashing()")
    (tmp_path / "example.py").write_text(code)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    runpy.run_path("example.py")
    assert "recall@1000t against the baseline" in capsys.readouterr().out


def test_the_readme_runs_as_shown(tmp_path: Path) -> None:
    """Five lines of YAML and of Python, in a project made with --sample; all links lead somewhere."""
    harness = str(Path(sys.executable).parent / "harness")
    subprocess.run([harness, "init", "sample", "--sample"], cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "sample"
    (text,), (code,) = blocks("README.md", "yaml"), blocks("README.md", "python")
    assert len(text.splitlines()) == 5
    assert len([line for line in code.splitlines() if line]) <= 5
    (folder / "experiments/chunks.yaml").write_text(text)
    (folder / "example.py").write_text(code)
    given = {**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'mlflow.db'}"}
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=folder, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "recall@1000t against the baseline 'fixed'" in done.stdout
    assert (folder / "report.html").stat().st_size > 100_000
    readme = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)", readme):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_chunker_of_the_docs_is_the_shipped_one() -> None:
    """docs/components.md and experiments/my_chunkers.py differ only in the docstring of the module."""
    shown = next(block for block in blocks("docs/components.md", "python") if "class ByHeading" in block)
    assert shown.strip() in (ROOT / "experiments/my_chunkers.py").read_text()


def test_the_components_of_the_docs_run_in_one_grid(tmp_path: Path) -> None:
    """One of each role, loaded by reference, through the command line."""
    for at, code in enumerate(blocks("docs/components.md", "python")):
        (tmp_path / f"own{at}.py").write_text(code)
    (tmp_path / "x.yaml").write_text(
        f"name: own\ndata: {ROOT / 'datasets/cookbook'}\ntokenizer: words\nchunker: {{fixed: {{size: 300}}}}\n"
        "embedder: own2.py:Letters\nselector: [own4.py:PerDocument, own5.py:Shortest]\n"
        "metrics: [recall@5, 'own6.py:NuggetRecall@5']\njudges: [own7.py:AnswerWords]\n"
        "grid: {chunker: [fixed: {size: 300}, own0.py:ByHeading], retriever: [dense, own3.py:SharedWords], "
        "augmenter: [none, own1.py:Category]}\n"
    )
    done = subprocess.run(
        [Path(sys.executable).parent / "harness", "run", "x.yaml", "--no-mlflow", "--workers", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    assert "by_heading · category · shared_words" in done.stdout
    assert "answer_words" in done.stdout


def test_the_model_judge_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded by reference, it asks and labels, and a failure of the server gives bounds."""
    from judged_questions import BYSTANDER, VICTIM, put
    from openai_server import Raw, Server

    from harness.experiment.catalog import component

    (tmp_path / "own.py").write_text(blocks("docs/components.md", "python")[8])
    judge = component("judge", {"own.py:Standalone": {"model": "m"}}, where="x", base_dir=tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    with Server(
        lambda asked: (
            Raw(500, b"", {"x-should-retry": "false"})
            if "Pine two" in asked.user
            else {"text": {"alone": "yes" if "one" in asked.user else "no"}}
        )
    ) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([VICTIM, BYSTANDER], tmp_path / "s", judge)
    assert outcome.verdict(BYSTANDER).scores["standalone"] == (1 / 3, 1 / 3, 1 / 3)
    assert outcome.verdict(VICTIM).scores["standalone"] == (None, 1 / 3, 2 / 3)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_experiments_expand(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are valid; each has more than one trial, except for the gate's; the quickstart has at least twelve."""
    from harness import read_experiment

    for name, value in (("MODEL", "m"), ("RERANK_MODEL", "r"), ("RERANK_URL", "http://localhost:1/v1")):
        monkeypatch.setenv(name, value)
    trials = read_experiment(path).trials()
    assert len(trials) >= {"quickstart.yaml": 12, "nightly.yaml": 1}.get(path.name, 2)


def test_the_workflow_runs_the_shipped_gate() -> None:
    """The GitHub workflow is YAML, keeps the exit code, and names the experiment and the files of the command."""
    steps = yaml.safe_load((ROOT / ".github/workflows/regression.yml").read_text())["jobs"]["gate"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name") == "Gate")
    assert "harness gate experiments/nightly.yaml --out gate" in script
    assert "gate/gate.md" in script
    assert script.rstrip().endswith("exit $code")


def test_the_yaml_example_expands(tmp_path: Path) -> None:
    """The experiment of the docs, next to the shipped chunker: two chunkers by three budgets."""
    from harness import read_experiment

    (tmp_path / "x.yaml").write_text(blocks("docs/experiment.md", "yaml")[0])
    (tmp_path / "my_chunkers.py").write_text((ROOT / "experiments/my_chunkers.py").read_text())
    assert len(read_experiment(tmp_path / "x.yaml").trials()) == 6


def test_the_python_example_of_judging_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unchanged, except for a price, which a budget needs on a server without a known price."""
    from openai_server import Asked, Server, grade_all

    def behave(asked: Asked) -> object:
        none = {"status": "none", "slots": [], "quote": ""}
        return dict.fromkeys(asked.slots, none) if "Items:" in asked.user else grade_all(asked)

    (code,) = blocks("docs/judging.md", "python")
    (tmp_path / "example.py").write_text(code.replace("Models(budget=0.50)", "Models(budget=0.50, price=(0.1, 0.5))"))
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        runpy.run_path("example.py")


def test_the_fault_injection_page_shows_what_its_script_prints() -> None:
    """Every digit: the simulated judge and its failures are the same in every run."""
    script = ROOT / "experiments/fault_injection.py"
    done = subprocess.run([sys.executable, "-P", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout in (ROOT / "docs/fault_injection.md").read_text()
    assert len(done.stdout.splitlines()) == 7


def test_the_judges_of_the_docs_are_built_in(tmp_path: Path) -> None:
    """With the names and settings shown."""
    from harness.experiment.catalog import component

    (tmp_path / "grades.csv").write_text("query,passage,grade\nq,p,2\n")
    block = next(block for block in blocks("docs/judging.md", "yaml") if block.startswith("judges:"))
    for spec in yaml.safe_load(block.replace("${JUDGE_MODEL}", "m"))["judges"]:
        component("judge", spec, where="docs", base_dir=tmp_path)


def test_the_findings_of_the_docs_are_complete() -> None:
    """With their descriptions, word for word."""
    from harness.data.checks.findings import CODES, ERRORS

    output = dict(
        re.findall(r"^\| `([a-z-]+)` \| (?:error|warning) \| (.*) \|$", (ROOT / "docs/data.md").read_text(), re.M)
    )
    assert output == CODES
    assert all(f"| `{code}` | error |" in (ROOT / "docs/data.md").read_text() for code in ERRORS)


def test_the_formats_of_the_docs_are_complete() -> None:
    """In docs/data.md, and in the importers."""
    from harness.data.importers import FORMATS

    section = (ROOT / "docs/data.md").read_text().split("## Formats")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| ", section, re.M)
    assert [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)] == list(FORMATS)


def test_the_glossary_explains_in_two_sentences() -> None:
    """Every entry, and every column of the comparison with a statistical meaning has one."""
    from reports.comparison_columns import COLUMNS

    text = (ROOT / "docs/glossary.md").read_text()
    entries = dict(re.findall(r"^### (.+?)\n\n(.+?)(?=\n\n#|\Z)", text, re.M | re.S))
    for name, said in entries.items():
        sentences = re.findall(r"[.!?](?:\s|$)", said.strip())
        assert len(sentences) == 2, (name, said)
    known = " ".join(entries).lower()
    for column in COLUMNS:
        word = column.title.replace("beyond …", "margin").lower()
        if column.meaning and column.name not in ("trial", "lost_mostly", "tokens"):
            assert word in known, word
    for word in (
        "cluster",
        "design effect",
        "bootstrap",
        "max-t",
        "power",
        "main effect",
        "kappa",
        "ppi++",
        "withheld",
    ):
        assert word in known, word


def test_the_tour_runs(tmp_path: Path) -> None:
    """Every cell, in a project made with --sample; the outputs that are shipped are those it gives."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    harness = str(Path(sys.executable).parent / "harness")
    subprocess.run([harness, "init", "sample", "--sample"], cwd=tmp_path, check=True, capture_output=True)
    path = tmp_path / "sample/experiments/tour.ipynb"
    shipped, made = nbformat.read(path, 4), nbformat.read(path, 4)
    nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()

    def said(book: Any) -> list[str]:
        outputs = [one for cell in book.cells for one in cell.get("outputs", ()) if one.output_type != "display_data"]
        texts = [one.get("text") or one.data.get("text/html") or one.data["text/plain"] for one in outputs]
        # A frame holds a whole page; what is shipped has the plain table beside it only.
        return [re.sub("<iframe .*?</iframe>", "", text, flags=re.DOTALL) for text in texts]

    assert said(made) == said(shipped)
    assert any("against the baseline" in text for text in said(made))
    assert (tmp_path / "sample/tour/report.html").is_file()


def test_progress_shows_in_a_notebook(tmp_path: Path) -> None:
    """A bar and words below the cell, while the work goes on."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = (
        "from harness.core.progress import progress\n"
        "shown = progress('embed', 1000, unit='texts', left=lambda: 120.0)\n"
        "advance = shown.__enter__()\n"
        "import time\n"
        "time.sleep(0.6)\n"
        "advance(400)\n"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (output,) = (one for one in book.cells[0].outputs if one.output_type == "display_data")
    assert output.data["text/html"].startswith('<progress value="400" max="1000"></progress> embed: 400 of 1,000 texts')
    assert "about 2 min left" in output.data["text/html"]
