"""Stored agreement between judges and people: one file in the store for each configuration of a judge and data."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.components.roles import Judge
from harness.storage.digest import digest
from harness.storage.sealed import read_sealed, write_sealed

FORMAT = 1
"""Version of the file format."""

ENOUGH = 100
"""The number of labels by people from which on a judge counts as calibrated."""


def _file(judge: Judge, store: Path, data: str) -> Path:
    assert judge.prompter is not None
    # Agreement depends on the threshold of relevance and on the data, so both identify the file.
    known = [judge.prompter.namespace(), judge.relevant_from, data]
    return store / "calibrations" / f"{digest(known)[:24]}.json"


def keep_agreement(judge: Judge, store: Path, data: str, found: Mapping[str, Any]) -> int:
    """Store an agreement (`labels`, `kappa`, `low`, `high`) unless one on more labels is stored.

    Returns the number of labels of the one that is then stored. `data` identifies the corpus and the queries.
    """
    file = _file(judge, store, data)
    known = read_sealed(file, FORMAT)
    if known and known["labels"] > found["labels"]:
        return int(known["labels"])
    # JSON has no NaN: an unknown bound is stored as null.
    plain = {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in found.items()}
    write_sealed(file, plain, FORMAT)
    return int(found["labels"])


def stored_agreement(judge: Judge, store: Path, data: str) -> str:
    """Return the judge's kappa on these data with its number of labels, as text; `uncalibrated` if none is stored.

    With fewer than `ENOUGH` labels, the text begins with `uncalibrated` and still shows kappa.
    """
    file = _file(judge, store, data)
    found = read_sealed(file, FORMAT)
    if not found:
        return "uncalibrated"
    bounds = "" if found["low"] is None else f" ({found['low']:.2f} … {found['high']:.2f})"
    kappa = math.nan if found["kappa"] is None else found["kappa"]
    message = f"kappa {kappa:.2f}{bounds} on {found['labels']} labels"
    return message if found["labels"] >= ENOUGH else f"uncalibrated: {message}, of {ENOUGH} needed"
