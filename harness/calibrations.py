"""What is known of a judge's agreement with people: one small file in the store for each way of judging."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.component import LlmJudge
from harness.store import digest, explained

ENOUGH = 100
"""Labels by people from which on a judge counts as calibrated."""


def _file(asking: LlmJudge, store: Path) -> Path:
    known = {"endpoint": asking.endpoint, "model": asking.model, "asking": dict(asking.labelling())}
    return store / "calibrations" / f"{digest(known)[:24]}.json"


def keep_calibration(asking: LlmJudge, store: Path, found: Mapping[str, Any]) -> None:
    """Remember an agreement: `labels`, `kappa`, `low`, `high` at least."""
    file = _file(asking, store)
    with explained(store):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(dict(found), indent=1), encoding="utf-8")
        draft.replace(file)


def calibration_of(asking: LlmJudge, store: Path) -> str:
    """`uncalibrated`, or on how many labels by people the judge was found to agree how well."""
    file = _file(asking, store)
    if not file.is_file():
        return "uncalibrated"
    found = json.loads(file.read_text(encoding="utf-8"))
    told = f"kappa {found['kappa']:.2f} ({found['low']:.2f} … {found['high']:.2f}) on {found['labels']} labels"
    return told if found["labels"] >= ENOUGH else f"uncalibrated: {told}, of {ENOUGH} needed"
