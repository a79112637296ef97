"""Odd files, names, folders and machines: an error in one line, safe display, or correct results."""

import json
import shutil
from pathlib import Path

import pytest
from project import harness, one_line, project

from harness import Experiment, Trial, plan, read_experiment, run
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.core.errors import ConfigError, DataError
from harness.core.strict_yaml import load_yaml
from harness.storage.files import file_name

ESCAPE = "\x1b[31mred\x1b[0m\x07\u202e"


@pytest.fixture
def place(garden_data: Path, tracking: str, tmp_path: Path) -> Path:
    project(tmp_path, None)
    return tmp_path


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join(['*' + before] * 10)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
PLAIN = "name: x\ndata: garden\nretriever: bm25\n"
TEXTS = {
    "alias bomb": (BOMB, "aliases"),
    "an alias that holds itself": ("a: &a [*a]\n", "recursive"),
    "a number of 5,000 digits": (f"name: x\ndata: {'9' * 5000}\n", "cannot be read"),
    "5,000 nested lists": (f"name: {'[' * 5000}{']' * 5000}\n", "nested too deep"),
    "5,000 nested mappings": (f"name: {'{a: ' * 5000}{'}' * 5000}\n", "nested too deep"),
    "NUL": ('name: x\ndata: "a\\0b"\n', "NUL"),
    "half a surrogate pair": ('name: "\\ud800"\ndata: garden\n', ""),
    "bytes": ("\x00\x01", ""),
    "tags of the wrong kind": ("name: !!timestamp x\n", "cannot be read"),
    "an empty number": ('name: !!int ""\n', "cannot be read"),
    "a truth that is none": ("name: !!bool x\n", "cannot be read"),
    "a metric of 5,000 digits": (
        f"name: x\ndata: garden\nchunker: fixed\nretriever: bm25\nmetrics: [recall@{'9' * 5000}]\n",
        "",
    ),
    "an endless setting": ("name: x\ndata: garden\nchunker: {fixed: {size: 1.0e+999}}\nretriever: bm25\n", ""),
    "a tag": ("name: !!python/object/apply:os.system [id]\n", ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_odd_yaml_is_one_line(name: str, place: Path) -> None:
    """In an experiment file and in the manifest of a data set."""
    text, message = TEXTS[name]
    (place / "odd.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ConfigError, match=message) as caught:
        read_experiment(place / "odd.yaml")
    assert "\n" not in str(caught.value)
    (place / "datasets/garden/manifest.yaml").write_text(text)
    with pytest.raises((ConfigError, DataError)) as other:
        plan(read_experiment(place / "x.yaml"), store=place / "s")
    assert "\n" not in str(other.value)


@pytest.mark.parametrize("name", ["x" * 5000, "../" * 2000 + "x"])
def test_data_of_an_impossible_name(name: str, place: Path) -> None:
    """An error in one line instead of a traceback of the operating system."""
    project(place, None, **{"data: garden": f"data: {name}"})
    one_line(harness(place, "plan", "x.yaml", code=2), "data")


def test_a_huge_grid_is_refused(place: Path) -> None:
    """At once, before any trial is expanded."""
    sizes = ", ".join(map(str, range(1, 500)))
    project(place, None)
    text = (place / "x.yaml").read_text()
    text = text[: text.index("grid:")] + f"grid: {{chunker.size: [{sizes}], retriever.depth: [{sizes}]}}\n"
    (place / "x.yaml").write_text(text)
    one_line(harness(place, "plan", "x.yaml", code=2), "249,001 combinations")


def test_aliases_are_fine() -> None:
    """As long as the expanded content has a reasonable size."""
    assert load_yaml("a: &a {x: 1}\nb: *a\nc: *a\n") == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}


def test_a_key_written_twice_is_refused_in_json_too(place: Path) -> None:
    """The message has the line number."""
    corpus = place / "datasets/garden/corpus.jsonl"
    corpus.write_text('{"id": "a", "text": "one", "text": "two"}\n')
    harness(place, "data", "pin", "datasets/garden", code=None)
    one_line(harness(place, "run", "x.yaml", code=None), "corpus.jsonl:1", "'text' occurs twice")


@pytest.mark.parametrize("name", ["a?b c", "c%41d", "q'uo\"te&ü#[x]*"])
def test_folders_of_any_name(name: str, garden_data: Path, tmp_path: Path) -> None:
    """Store, MLflow database, artifacts and report are in the expected places."""
    folder = tmp_path / name
    shutil.copytree(tmp_path / "datasets", folder / "datasets")
    project(folder, None)
    harness(folder, "run", "x.yaml")
    harness(folder, "report", "x.yaml")
    assert {"mlflow.db", "mlartifacts", ".harness", "attacked.html"} <= {path.name for path in folder.iterdir()}
    assert list((folder / "mlartifacts/attacked").rglob("metrics.json"))
    assert {path.name for path in tmp_path.iterdir()} == {name, "datasets"}


@pytest.mark.parametrize("name", ["..", ".", "../../x", "a/b", "a" * 300, "\x1b[31m", "-", "con\u202e"])
def test_experiments_of_any_name_stay_in_their_folder(name: str, place: Path) -> None:
    """For MLflow artifacts and reports."""
    made = file_name(name)
    assert made not in ("", ".", "..")
    assert "/" not in made
    assert len(made.encode()) < 200
    assert Path(place, made).resolve().parent == place.resolve()


def test_an_experiment_called_dot_dot(place: Path) -> None:
    """From run to report, nothing is written outside the project."""
    project(place, None, **{"name: attacked": 'name: ".."'})
    before = {path.name for path in place.parent.iterdir()}
    harness(place, "run", "x.yaml", "--tracking", f"sqlite:///{place / 'mlflow.db'}")
    harness(place, "report", "x.yaml")
    assert {path.name for path in place.parent.iterdir()} == before
    assert (place / "experiment.html").is_file()
    assert list((place / "mlartifacts/experiment").rglob("metrics.json"))


def test_terminal_escapes_are_made_visible(place: Path) -> None:
    """Escapes in documents, ids, titles and types, in every command that prints them, and in the gate's files."""
    folder = place / "datasets/garden"
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    rows[0]["text"] = f"{ESCAPE} {rows[0]['text']}"
    rows[1]["id"] = f"bed{ESCAPE}"
    rows[1]["title"] = ESCAPE
    asked = [json.loads(line) for line in (folder / "queries/validation.jsonl").read_text().splitlines()]
    kept = [one for one in asked if all(item["doc"] not in ("bed0", "bed1") for item in one.get("evidence", []))]
    kept[0] |= {"id": f"q{ESCAPE}", "text": f"Which {ESCAPE}?", "metadata": {"type": ESCAPE, "category": ESCAPE}}
    for name, records in (("corpus", rows), ("queries/validation", kept)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    project(place, None, **{"question: Does it hold?": f"question: {json.dumps('Is it ' + ESCAPE + '?')}"})
    commands = [
        ("data", "pin", "datasets/garden"),
        ("data", "check", "datasets/garden"),
        ("data", "show", "datasets/garden"),
        ("data", "show", "datasets/garden", "--query", f"q{ESCAPE}"),
        ("run", "x.yaml", "--tracking", f"sqlite:///{place / 'mlflow.db'}"),
        ("compare", "x.yaml"),
        ("compare", "x.yaml", "--csv"),
        ("compare", "x.yaml", "--json"),
        ("report", "x.yaml", "--out", "page.html"),
        ("gate", "x.yaml", "--accept", "--why", ESCAPE, "--tracking", f"sqlite:///{place / 'mlflow.db'}"),
        ("gate", "x.yaml", "--out", "gate", "--tracking", f"sqlite:///{place / 'mlflow.db'}"),
        ("run", f"none{ESCAPE}.yaml"),
        ("list", "metrics"),
    ]
    for command in commands:
        done = harness(place, *command, code=None)
        for said in (done.stdout, done.stderr):
            assert "\x1b" not in said, command
            assert "\u202e" not in said, command
            assert "\x07" not in said, command
    for file in [place / "page.html", *(place / "gate").iterdir()]:
        assert b"\x1b" not in file.read_bytes(), file
        assert "\u202e".encode() not in file.read_bytes(), file


def test_a_store_may_be_named_by_text(garden_data: Path, tmp_path: Path) -> None:
    """A string is a convenient path in a notebook."""
    made = Experiment(
        "text", Trial("garden", Fixed(20), BM25(), tokenizer="words", metrics=("recall@3",)), base_dir=tmp_path
    )
    launch = run(made, store=str(tmp_path / "s"), log=False)
    assert len(launch.results) == 1
    assert plan(made, store=str(tmp_path / "s")).trials[0].stored["score"]


def test_missing_extras_are_one_line_at_the_plan(place: Path) -> None:
    """Without torch or a splitter's library, the message names the extra to install."""
    blocker = place / "blocked"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\n\n\nclass Blocked:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'sentence_transformers', 'langchain_text_splitters'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n\n\n"
        "sys.meta_path.insert(0, Blocked())\n"
    )
    without = {"PYTHONPATH": str(blocker)}
    project(place, None, **{"{bm25: {depth: 5}}": "{dense: {depth: 5}}"})
    for command in ("plan", "run"):
        done = harness(place, command, "x.yaml", code=2, **without)
        one_line(done, "x.yaml", "embedder local", "retrieval-harness[local]")
    project(place, None)
    harness(place, "plan", "x.yaml", **without)


def test_the_table_of_exit_codes_is_correct(place: Path) -> None:
    """The table of the docs: a command for each code."""
    table = (Path(__file__).parents[2] / "docs/commands.md").read_text()
    codes = [
        int(line.split("|")[1])
        for line in table.splitlines()
        if line.startswith("| ") and line.split("|")[1].strip().isdigit()
    ]
    assert codes == [0, 1, 2, 3, 70, 130]
    assert harness(place, "run", "x.yaml", "--no-mlflow").returncode == 0
    shutil.copytree(place / "datasets/garden", place / "datasets/wrong")
    (place / "datasets/wrong/corpus.jsonl").write_text('{"id": "bed0", "text": "short"}\n')
    harness(place, "data", "pin", "datasets/wrong", code=None)
    assert harness(place, "data", "check", "datasets/wrong", code=None).returncode == 1
    assert harness(place, "run", "none.yaml", code=None).returncode == 2
    assert harness(place, "run", code=None).returncode == 2
    project(place)
    unreachable = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = harness(place, "run", "x.yaml", "--no-mlflow", "--offline", code=None, **unreachable)
    assert done.returncode == 3
    broken = place / "broken"
    broken.mkdir()
    (broken / "pydantic.py").write_text("raise RuntimeError('broken')\n")
    assert harness(place, "run", "x.yaml", code=70, PYTHONPATH=str(broken)).returncode == 70


def test_no_crash_uses_exit_code_1(tmp_path: Path) -> None:
    """Not even a broken installation: exit code 1 is reserved for verdicts."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "pydantic.py").write_text("raise RuntimeError('broken')\n")
    (tmp_path / "x.yaml").write_text("name: x\ndata: y\n")
    done = harness(tmp_path, "plan", "x.yaml", code=70, PYTHONPATH=str(broken))
    assert "RuntimeError: broken" in done.stderr


@pytest.mark.parametrize("temperature", [0, 0.0, -0.0])
def test_one_temperature_is_one_address(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """0, 0.0 and -0.0 are the same."""
    from judges import ContextPrecision

    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert (
        ContextPrecision("m", temperature=temperature).namespace() == ContextPrecision("m", temperature=0.0).namespace()
    )
