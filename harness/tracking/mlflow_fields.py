"""The content of a trial's MLflow run as plain data: metric keys, values and files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.evaluation.metrics import split_metric
from harness.evaluation.results import TrialResult
from harness.evaluation.trial_means import mean_interval
from harness.tracking.records import FinishedTrial
from harness.tracking.trial_files import write_per_query, write_trial

TABLE = "eval/per_query.json"
"""The per-query table that the MLflow UI compares between runs: first column `query`, second `result`."""

_PASSAGES, _LETTERS = 5, 90
"""How many passages the table shows of a query, and how many characters of each."""

_JSON = json.JSONEncoder(ensure_ascii=False)


class TrendKeys(NamedTuple):
    """The keys of one metric in a trial's trend; the fields are those of `TrendPoint`."""

    mean: str
    low: str
    high: str
    baseline: str
    verdict: str


def metric_key(name: str) -> str:
    """Return the MLflow name of a metric: without `@`, and with ranks zero-padded so that they sort as text.

    A judge's measure keeps its name.

    >>> metric_key("recall@5"), metric_key("recall@1000t"), metric_key("iprec@0.1"), metric_key("mrr")
    ('recall_05', 'recall_1000t', 'iprec_0.1', 'mrr')
    """
    if "@" not in name:
        return name
    metric = split_metric(name)
    if metric.level is not None:
        return f"{metric.measure}_{metric.level}"
    if metric.k is not None:
        return f"{metric.measure}_{metric.k:02d}"
    return metric.measure if metric.tokens is None else f"{metric.measure}_{metric.tokens}t"


def trial_metrics(result: TrialResult, metrics: Sequence[str]) -> dict[str, float]:
    """Return all scalar metrics of a trial by MLflow key: means and intervals of `metrics`, costs, losses, judges."""
    values = {metric_key(name): result.mean(name) for name in metrics}
    return values | dict(_efficiency(result)) | intervals(result, metrics) | dict(_judged(result))


def intervals(result: TrialResult, metrics: Sequence[str]) -> dict[str, float]:
    """Return the 95 % intervals of the means of `metrics`, as `ci/<metric>_lo` and `_hi`."""
    bounds = {}
    for name in metrics:
        found = mean_interval(result, name)
        if found:
            bounds[f"ci/{metric_key(name)}_lo"], bounds[f"ci/{metric_key(name)}_hi"] = found
    return bounds


def trend_keys(metric: str) -> TrendKeys:
    """Return the MLflow keys of a metric in a trial's trend."""
    key = metric_key(metric)
    return TrendKeys(key, f"ci/{key}_lo", f"ci/{key}_hi", f"baseline/{key}", f"gate/{key}")


def _judged(result: TrialResult) -> Iterator[tuple[str, float]]:
    """The completeness of each measure of a judge, and the bounds of its mean over all queries."""
    for name, judged in result.judged.items():
        low, high = judged.bounds
        yield from ((f"judge/{name}_lo", low), (f"judge/{name}_hi", high))
        yield from ((f"judge/{name}_complete", judged.complete), (f"judge/{name}_total", judged.total))


def _efficiency(result: TrialResult) -> Iterator[tuple[str, float]]:
    """Costs and losses. Metrics that MLflow tables show have no slash in their keys."""
    facts = result.efficiency
    yield from (("lat_p50_ms", facts["latency_p50_ms"]), ("lat_p95_ms", facts["latency_p95_ms"]))
    yield from ((name, facts[name]) for name in ("context_tokens", "chunks", "redundancy"))
    shown = {"latency_p50_ms", "latency_p95_ms", "context_tokens", "chunks", "redundancy"}
    for name, value in facts.items():
        if name not in shown:
            group = "selector" if name.startswith("step_") else "latency" if name.endswith("_ms") else "cost"
            yield f"{group}/{name.removeprefix('step_')}", value
    lost = result.losses()
    items = max(1, sum(lost.values()))
    for outcome, count in lost.items():
        yield f"loss/{outcome.replace(':', '_')}", count / items
    scored = sum(bool(evidence_outcomes) for evidence_outcomes in result.evidence_outcomes)
    yield from (
        ("queries/all", len(result.queries)),
        ("queries/scored", scored),
        ("queries/unanswerable", len(result.queries) - scored),
    )


def write_files(folder: Path, trial: FinishedTrial) -> None:
    """Write the artifacts of a trial's run to `folder`: the per-query table, all per-query records, exact metrics."""
    (folder / "eval").mkdir()
    metrics, judged = list(trial.metrics), bool(trial.result.judged)
    columns = ["query", "result", "query_id", "type", *metrics, "dropped", *(["judgments"] if judged else [])]
    with (folder / TABLE).open("w", encoding="utf-8") as table:
        table.write(f'{{"columns": {_JSON.encode(columns)}, "data": [')
        for at, row in enumerate(write_per_query(folder, trial.rows())):
            cells = [
                *(row["query"], _line(row, metrics), row["query_id"], row["type"]),
                *(row["scores"][m] for m in metrics),
                _dropped(row),
                *([_judgments(row)] if judged else []),
            ]
            table.write(f"{', ' if at else ''}{_JSON.encode(cells)}")
        table.write("]}")
    write_trial(folder, trial.result, trial.settings)


def _line(row: Mapping[str, Any], metrics: Sequence[str]) -> str:
    """One query's result in one line: scores, lost evidence, and the beginning of each kept passage, ✓ if relevant."""
    scores = ", ".join(f"{name} {_short(row['scores'][name])}" for name in metrics[:3])
    lost = [e["outcome"] for e in row["evidence"] if e["outcome"] != "found"]
    lost = [f"lost: {', '.join(lost)}"] if lost else []
    kept = [
        f"{rank}{'✓' if p['relevant'] else '✗'}{_grades(p)} “{_beginning(p['text'])}” ({p['doc']})"
        for rank, p in enumerate(row["kept"][:_PASSAGES], 1)
    ]
    more = [f"and {len(row['kept']) - _PASSAGES} more"] if len(row["kept"]) > _PASSAGES else []
    return " · ".join([scores, *lost, *kept, *more])


def _beginning(text: str) -> str:
    words = " ".join(text.split()).lstrip("# ")
    return words if len(words) <= _LETTERS else f"{words[:_LETTERS].rsplit(' ', 1)[0]} …"


def _dropped(row: Mapping[str, Any]) -> str:
    """What each step dropped, most frequent reasons first: `dedup 2: near-duplicate of a:0-90 | top_k 40: …`."""
    steps: dict[str, dict[str, int]] = {}
    for passage in row["dropped"]:
        reasons = steps.setdefault(passage["step"], {})
        reasons[passage["reason"]] = reasons.get(passage["reason"], 0) + 1
    return " | ".join(
        f"{step} {sum(reasons.values())}: {'; '.join(sorted(reasons, key=lambda why: (-reasons[why], why))[:3])}"
        for step, reasons in steps.items()
    )


def _grades(passage: Mapping[str, Any]) -> str:
    """The judges' grades of a passage, such as `[3]`, or `[?]` if a judgment is missing."""
    first = (judgments[0] for judgments in passage.get("judged", {}).values())
    return "".join(f"[{judgment.get('grade', '?')}]" for judgment in first)


def _judgments(row: Mapping[str, Any]) -> str:
    """Each judge's grade of each passage or item, and its reason: `context_precision: 1[3] names the oven …`."""
    lines = []
    for judge, verdict in row["judges"].items():
        found = [
            f"{finding.get('rank') or repr(finding['item'][:60])}{_judgment(one)}"
            for finding in verdict["findings"]
            for one in finding["judgments"]
        ]
        lines.append(f"{judge}: {'; '.join([*verdict['flags'], *found]) or 'nothing to judge'}")
    return " | ".join(lines)


def _judgment(judgment: Mapping[str, Any]) -> str:
    if "failed" in judgment:
        return f"[?] {judgment['failed']}"
    flags = "".join(f" ({flag})" for flag in judgment.get("flags", ()))
    return f"[{judgment['grade']}] {judgment.get('why', '')}{flags}".rstrip()


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
