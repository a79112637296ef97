"""What is known of a judge's agreement with people: one small file in the store for each way of judging."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.components.llm_roles import LlmJudge
from harness.storage.digest import digest
from harness.storage.sealed import read_sealed, write_sealed

FORMAT = 1
"""Of the file."""

ENOUGH = 100
"""Labels by people from which on a judge counts as calibrated."""


def _file(prompter: LlmJudge, store: Path, data: str) -> Path:
    # Another cut between relevant and irrelevant is another agreement, and so are other documents and questions.
    known = [prompter.namespace(), getattr(prompter, "relevant_from", None), data]
    return store / "calibrations" / f"{digest(known)[:24]}.json"


def keep_agreement(prompter: LlmJudge, store: Path, data: str, found: Mapping[str, Any]) -> int:
    """Remember an agreement (`labels`, `kappa`, `low`, `high`), unless one on more labels is known; gives its labels.

    `data` identifies the corpus and the queries.
    """
    file = _file(prompter, store, data)
    known = read_sealed(file, FORMAT)
    if known and known["labels"] > found["labels"]:
        return int(known["labels"])
    # JSON has no NaN: a bound that is not known is null.
    plain = {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in found.items()}
    write_sealed(file, plain, FORMAT)
    return int(found["labels"])


def stored_agreement(prompter: LlmJudge, store: Path, data: str) -> str:
    """`uncalibrated`, or on how many labels by people the judge was found to agree how well on these data."""
    file = _file(prompter, store, data)
    found = read_sealed(file, FORMAT)
    if not found:
        return "uncalibrated"
    bounds = "" if found["low"] is None else f" ({found['low']:.2f} … {found['high']:.2f})"
    kappa = math.nan if found["kappa"] is None else found["kappa"]
    message = f"kappa {kappa:.2f}{bounds} on {found['labels']} labels"
    return message if found["labels"] >= ENOUGH else f"uncalibrated: {message}, of {ENOUGH} needed"
