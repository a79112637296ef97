"""Forty typical mistakes: one line that names the place and says what would be right, and exit code 2."""

import json
from pathlib import Path

import pytest
from project import FIRST, harness, one_line

COMMANDS = {
    "an option that is not known": (
        "run x.yaml --worker 2",
        "harness run: ",
        "Did you mean '--workers'?",
        "Usage: harness",
    ),
    "an option that is abbreviated": ("compare x.yaml --bas chunker=fixed", "no option '--bas'", "--baseline"),
    "a number that is none": ("run x.yaml --workers two", "--workers: expected a whole number, got 'two'"),
    "a command that is misspelt": ("rnu x.yaml", "no command 'rnu'. Did you mean 'run'?", "Usage: harness COMMAND"),
    "a subcommand that is misspelt": ("data chek garden", "harness data: ", "no command 'chek'. Did you mean 'check'?"),
    "no experiment": ("run", "harness run: ", "required: experiment", "Usage: harness run experiment"),
    "a second experiment": ("run x.yaml y.yaml", "no further argument 'y.yaml'", "Usage: harness run experiment"),
    "two forms at once": ("compare x.yaml --json --csv", "--csv: not allowed with argument --json"),
    "a file that is not there": ("run y.yaml", "y.yaml: no such file"),
    "a folder instead of a file": ("run .", "is a folder; name an experiment file"),
    "a component that is misspelt": ("list bm52", "no component or metric 'bm52'. Did you mean 'bm25'?"),
    "a format that is not known": ("data import beri src", "FORMAT: no choice 'beri'. Did you mean 'beir'?"),
    "a source that is not there": ("data import text nowhere", "nowhere: no such file or folder"),
    "a column that is not known": (
        "data import csv . t --map query.txt=a",
        "no such column. Did you mean 'query.text'?",
    ),
    "a data set that is misspelt": ("data check gardn", "no data set 'gardn'", "Did you mean 'garden'?"),
    "a price of one number": ("run x.yaml --price 3", "--price 3: write IN,OUT in dollars per million tokens, such as"),
    "a budget below 0": ("run x.yaml --budget -1", "--budget -1: expected dollars, such as 0.50"),
    "a filter without =": ("run x.yaml --filter fixed", "--filter fixed: write PARAM=VALUE, such as chunker=fixed"),
    "a filter that matches nothing": (
        "run x.yaml --filter chunker=fixd",
        "no trial has chunker: fixd. Did you mean 'fixed'?",
    ),
    "a limit of nothing": ("run x.yaml --limit 0", "limit: expected at least 1 query, got 0"),
    "a tag of ours": ("run x.yaml --tag kind=a", "'kind' is a tag that the harness or MLflow writes; choose another"),
    "no workers": ("run x.yaml --workers 0", "workers: expected at least 1, got 0"),
    "a fraction of 30": ("data split garden --test 30", "--test 30: expected a fraction between 0 and 1, such as 0.3"),
    "a second split": ("data split garden", "has a locked set 'test' already; queries are split only once"),
    "a project over another": ("init .", "already contains files; name a new folder"),
    "results before a run": ("compare x.yaml", "1 of 1 trials of 'first' have not run; run them with `harness run`"),
    "a name that has not run": ("report firts", "no launch of an experiment 'firts' in", "It holds none"),
    "a gate without a baseline": ("gate x.yaml --tracking jsonl:r", "no baseline of 'first'", "`--accept --why TEXT`"),
    "an acceptance without a reason": (
        "gate x.yaml --accept --tracking jsonl:r",
        "--accept needs a reason: --why TEXT",
    ),
    "a quote that is not there": ("data evidence garden --query q --quote absent", "does not occur in any document"),
}
FILES = {
    "a key that is misspelt": ("chunker:", "chunkr:", "x.yaml:4: unknown key 'chunkr'. Did you mean 'chunker'?"),
    "a chunker that is misspelt": (
        "fixed:",
        "fixd:",
        "x.yaml:4: chunker: no chunker named 'fixd'. Did you mean 'fixed'?",
    ),
    "a setting that is misspelt": (
        "size:",
        "sise:",
        "x.yaml:4: chunker.fixed: fixed has no setting 'sise'. Did you mean",
    ),
    "a number in quotes": (
        "size: 20",
        "size: '20'",
        'x.yaml:4: chunker.fixed: size: input should be a valid integer, got "20"',
    ),
    "a metric that is misspelt": (
        "recall@3",
        "recal@3",
        "x.yaml:8: metrics[0]: no metric named 'recal@3'. Did you mean",
    ),
    "a tab": ("metrics:", "\tmetrics:", "x.yaml:8: not valid YAML: a tab; indent with spaces"),
    "a second colon": (
        "name: first",
        "name: a: b",
        "x.yaml:1: not valid YAML: a second `: ` in one line; put the text in quotes",
    ),
    "a bracket that is left open": (
        "[recall@3]",
        "[recall@3",
        "x.yaml:9: not valid YAML: a list in [ ] that is not closed",
    ),
    "a key that is there twice": ("name: first", "name: a\nname: b", "x.yaml:2: key 'name' is written twice"),
    "a data set that is misspelt": (
        "data: garden",
        "data: gardn",
        "data: no data set 'gardn'",
        "Did you mean 'garden'?",
    ),
    "a query set that is misspelt": (
        "metrics:",
        "queries: valid\nmetrics:",
        "no query set named 'valid'",
        "It has: validation, test",
    ),
    "the locked set": ("metrics:", "queries: test\nmetrics:", "'test' is locked for the final score", "--final"),
    "a custom file that is not there": (
        "{fixed: {size: 20}}",
        "own.py:Own",
        "x.yaml:4: chunker: ",
        "own.py does not exist",
    ),
    "a grid of one value": (
        "metrics:",
        "grid: {chunker: fixed}\nmetrics:",
        "x.yaml:8: grid.chunker: expected a list of values",
    ),
    "a path into nothing": (
        "metrics:",
        "grid: {chunker.sise: [1]}\nmetrics:",
        "x.yaml:8: grid.chunker.sise: fixed has no setting",
    ),
    "a baseline that is no trial": (
        "metrics:",
        "compare: {baseline: {chunker: fixd}}\nmetrics:",
        "no trial has chunker: fixd",
    ),
    "a variable that is not set": (
        "name: first",
        "name: ${NO_SUCH}",
        "x.yaml:1: name: the environment variable NO_SUCH is not set",
    ),
    "a selector that takes too much": (
        "k: 3",
        "k: 30",
        "x.yaml:7: selector.top_k: takes 30 hits, but the retriever returns 5",
    ),
}


@pytest.mark.parametrize("mistake", COMMANDS)
def test_mistakes_on_the_command_line(mistake: str, garden_data: Path, tmp_path: Path) -> None:
    """In a project with an experiment that has not run."""
    (tmp_path / "x.yaml").write_text(FIRST)
    command, *parts = COMMANDS[mistake]
    one_line(harness(tmp_path, *command.split(), code=None, MLFLOW_TRACKING_URI=""), "harness", *parts)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("mistake", FILES)
def test_mistakes_in_the_file(mistake: str, garden_data: Path, tmp_path: Path) -> None:
    """Found by `plan` already, with the line."""
    old, new, *parts = FILES[mistake]
    assert old in FIRST
    (tmp_path / "x.yaml").write_text(FIRST.replace(old, new, 1))
    one_line(harness(tmp_path, "plan", "x.yaml", code=None), *parts)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (
            {"id": "q", "text": "?", "evidence": [{"doc": "bed9"}]},
            ("validation.jsonl:1", "no document 'bed9' in the corpus"),
        ),
        (
            {"id": "q", "text": "?", "evidence": [{"doc": "bed0", "start": 0, "end": 3, "quote": "xxx"}]},
            ("validation.jsonl:1", "harness data check"),
        ),
    ],
)
def test_mistakes_in_the_data(
    garden_data: Path, tmp_path: Path, line: dict[str, object], parts: tuple[str, ...]
) -> None:
    """The file, its line, and the command that lists all of them."""
    (garden_data / "queries/validation.jsonl").write_text(json.dumps(line) + "\n")
    harness(tmp_path, "data", "pin", "garden")
    (tmp_path / "x.yaml").write_text(FIRST)
    one_line(harness(tmp_path, "run", "x.yaml", "--no-mlflow", code=None), *parts)


def test_there_are_forty() -> None:
    """More do no harm."""
    assert len(COMMANDS) + len(FILES) + 2 >= 40
