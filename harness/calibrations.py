"""What is known of a judge's agreement with people: one small file in the store for each way of judging."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.asking import LlmJudge
from harness.store import digest, explained

ENOUGH = 100
"""Labels by people from which on a judge counts as calibrated."""


def _file(asking: LlmJudge, store: Path, data: str) -> Path:
    # Another cut between relevant and irrelevant is another agreement, and so are other documents and questions.
    known = [asking.space(), getattr(asking, "relevant_from", None), data]
    return store / "calibrations" / f"{digest(known)[:24]}.json"


def keep_calibration(asking: LlmJudge, store: Path, data: str, found: Mapping[str, Any]) -> int:
    """Remember an agreement (`labels`, `kappa`, `low`, `high`), unless one on more labels is known; gives its labels.

    `data` identifies the corpus and the queries.
    """
    file = _file(asking, store, data)
    with explained(store):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            known = int(json.loads(file.read_text(encoding="utf-8"))["labels"])
            if known > found["labels"]:
                return known
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(dict(found), indent=1), encoding="utf-8")
        draft.replace(file)
    return int(found["labels"])


def calibration_of(asking: LlmJudge, store: Path, data: str) -> str:
    """`uncalibrated`, or on how many labels by people the judge was found to agree how well on these data."""
    file = _file(asking, store, data)
    if not file.is_file():
        return "uncalibrated"
    found = json.loads(file.read_text(encoding="utf-8"))
    bounds = "" if math.isnan(found["low"]) else f" ({found['low']:.2f} … {found['high']:.2f})"
    told = f"kappa {found['kappa']:.2f}{bounds} on {found['labels']} labels"
    return told if found["labels"] >= ENOUGH else f"uncalibrated: {told}, of {ENOUGH} needed"
