"""Judges of a user's own, judges without a model, and judges that do not fit the data."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_experiments import study
from openai_server import Asked, Server

from harness import run
from harness.core.errors import ConfigError
from judges import ContextPrecision, ContextRecall, HeuristicPrecision, HeuristicRecall
from reports.judge_notes import judge_notes, judge_table

OWN = """
from dataclasses import dataclass
from typing import ClassVar

from harness.components import AnswerSchema, Choice, Finding, Label, LlmJudge, Prompt, Score, Task, Verdict
from judges import ContextPrecision


@dataclass(frozen=True)
class Coin(LlmJudge):
    \"\"\"Says yes or no.\"\"\"

    takes: bool = True
    measures: ClassVar = ("coin",)

    def tasks(self, case):
        return [Task("", (p.text,), take=t) for p in case.passages for t in range(self.repeats if self.takes else 1)]

    def batches(self, tasks):
        return [(task,) for task in sorted(tasks)]

    def prompt(self, batch):
        schema = AnswerSchema((("yes", Choice(("yes", "no"))),))
        return Prompt("", batch[0].texts[0], schema, {"text": batch[0]}, output=5)

    def read(self, task, entry, prompt):
        return Label(int(entry["yes"] == "yes"))

    def score(self, case, judgments):
        return Verdict({"coin": Score.exactly(0.5)})


@dataclass(frozen=True)
class Strict(ContextPrecision):
    \"\"\"Measures what its parent does.\"\"\"


@dataclass(frozen=True)
class Broken(Coin):
    \"\"\"Forgets its measure.\"\"\"

    def score(self, case, judgments):
        return Verdict({"other": None})
"""


def own(tmp_path: Path, name: str, **settings: Any) -> Any:
    from harness.experiment.catalog import component

    (tmp_path / "own.py").write_text(OWN)
    return component("judge", {f"own.py:{name}": {"model": "m", **settings}}, where="x", base_dir=tmp_path)


def test_flips_of_a_judge_without_a_threshold(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Yes, no, yes is disagreement, although the grades 0 and 1 are both below 2."""
    seen: dict[str, int] = {}

    def wavering(asked: Asked) -> Any:
        seen[asked.user] = seen.get(asked.user, 0) + 1
        return {"text": {"yes": "no" if seen[asked.user] == 2 else "yes"}}

    server.behave = wavering
    made = study(tmp_path, own(tmp_path, "Coin", repeats=3), grid={"selector.k": [2]})
    assert run(made, store=tmp_path / "s", log=False).judging_report.judges[0].flips == 1.0


@pytest.mark.parametrize(
    ("judges", "expected"),
    [
        ([("Coin", {"repeats": 2, "takes": False})], "repeats: its tasks have no `take`"),
        ([("Broken", {})], "judge broken: query 'bed0-2': score returned other; its measures are coin"),
        ([("Strict", {}), None], "strict and context_precision both measure 'context_precision'"),
    ],
)
def test_invalid_judges_give_one_line(
    judges: Any, expected: str, server: Server, garden_data: Path, tmp_path: Path
) -> None:
    """It names the judge and what is expected."""
    server.behave = lambda asked: {"text": {"yes": "yes"}}
    made = [ContextPrecision("m") if one is None else own(tmp_path, one[0], **one[1]) for one in judges]
    with pytest.raises(ConfigError, match=re.escape(expected)):
        run(study(tmp_path, *made), store=tmp_path / "s", log=False)


def test_judges_without_a_model(garden_data: Path, tmp_path: Path) -> None:
    """They need no key, server or money, which a note says; retrieved evidence counts in full."""
    launch = run(study(tmp_path, HeuristicPrecision(), HeuristicRecall()), store=tmp_path / "s", log=False)
    assert launch.judging_report.spend.requests == 0
    result = launch.results[2]
    assert result.judged["heuristic_recall"].complete == result.judged["heuristic_recall"].total == 12
    assert result.mean("heuristic_recall") >= result.mean("recall@3")
    assert any("no LLM was used" in note for note in judge_notes(launch))
    assert judge_table(launch)


def test_data_that_cannot_be_judged_are_an_error(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """The error is raised before any call."""
    make_data([{"id": "d", "text": "Tulips."}], [{"id": "q", "text": "T?", "evidence": [{"doc": "d"}]}], name="garden")
    for judge, message in (
        (ContextRecall("m"), "document-level evidence"),
        (ContextRecall("m", of="answer"), "no query has"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(study(tmp_path, judge), store=tmp_path / "s", log=False)
