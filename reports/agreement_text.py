"""A judge's agreement with human labels as text and JSON."""

import json
import math
from dataclasses import asdict

from harness.core.json_text import plain
from harness.evaluation.stats.rates import Estimate
from harness.running.judging.agreement import Agreement
from harness.running.judging.agreement_store import ENOUGH


def text(found: Agreement) -> str:
    """Returns agreement, confusion matrix, flip rates and corrected means as text, for the terminal."""
    lines = [
        f"{found.judge} ({found.model}) against people on {found.labels} passages, relevant from {found.relevant_from}",
        "",
        f"kappa        {_estimate_text(found.kappa)}",
        f"of all grades {_one(None if math.isnan(found.graded) else found.graded)}   unweighted, grades not binarized",
        f"sensitivity  {_estimate_text(found.sensitivity)}   fraction of human-relevant passages the judge accepts",
        f"specificity  {_estimate_text(found.specificity)}   fraction of human-irrelevant passages it rejects",
    ]
    table = found.confusion
    people, judge = table.both + table.people_only, table.both + table.judge_only
    lines += [
        f"relevant     people {people / found.labels:.3f}, judge {judge / found.labels:.3f}",
        "",
        "people \\ judge  " + "".join(f"{grade:>6}" for grade in range(len(found.grades))),
        *(f"{grade:>12}  " + "".join(f"{count:>6}" for count in row) for grade, row in enumerate(found.grades)),
        "",
    ]
    if found.missing:
        lines.append(f"{found.missing} graded passages have no judgment and are excluded above")
    if not found.trials:
        return "\n".join([*lines, *(f"note: {note}" for note in found.notes)]).rstrip()
    swapped = "not measured (--swap)" if found.swap_flips is None else _estimate_text(found.swap_flips)
    repeats = "not measured (repeats: 3)" if found.repeat_flips is None else f"{found.repeat_flips:.3f}"
    lines += [f"flips with the passages in reverse order: {swapped}", f"flips between repeats: {repeats}", ""]
    return "\n".join([*lines, *_means(found)])


def _means(found: Agreement) -> list[str]:
    lines = [f"note: {note}" for note in found.notes]
    if found.trials[0].corrected is not None:
        width = max(len(row.trial) for row in found.trials)
        against = f"difference to '{found.baseline}', corrected (95 %)"
        lines.append(f"{'trial':<{width}}  judged    corrected (95 %)          {against}")
        for row in found.trials:
            gap = (
                ""
                if row.difference is None
                else f"{_one(row.judged_difference, '+.3f')} -> {_estimate_text(row.difference, '+.3f')}"
            )
            lines.append(
                f"{row.trial:<{width}}  {_one(row.judged):<8}  {_estimate_text(row.corrected)}   {gap}".rstrip()
            )
        lines.append("corrected: prediction-powered (PPI++), over the queries of the sheet")
    if found.calibrated_on < ENOUGH:
        lines.append(f"reports still say uncalibrated: {found.calibrated_on} labels, {ENOUGH} are needed")
    elif found.calibrated_on > found.labels:
        lines.append(f"reports still show the earlier agreement on {found.calibrated_on} labels")
    return lines


def _one(value: float | None, form: str = ".3f") -> str:
    return "missing" if value is None else f"{value:{form}}"


def as_json(found: Agreement) -> str:
    """Returns all of the agreement as JSON; NaN and infinity become null."""
    return json.dumps(plain(asdict(found)), indent=1, ensure_ascii=False, allow_nan=False)


def _estimate_text(found: Estimate | None, form: str = ".3f") -> str:
    if found is None or math.isnan(found.value):
        return "–"
    if math.isnan(found.low):
        return f"{found.value:{form}} (too few queries for an interval)"
    return f"{found.value:{form}} ({found.low:{form}} … {found.high:{form}})"
