"""Queries of a trial as MLflow traces with assessments, so that MLflow's own pages compare trials query by query.

A trace has a span for retrieval with the passages that were kept, and one for each selector step with what it dropped.
MLflow shows a mark beside a passage if an assessment is named `retrieval_relevance`, has the passage's `chunk_index`
and the span of the retriever, and if the passages are listed with `page_content`. Tested with 3.17.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from harness.core.secrecy import redact
from harness.tracking.mlflow_fields import metric_key

_BATCH = 50
"""How many traces have their spans written in one transaction."""
_LONGEST = 20_000
"""Characters of a passage in a trace."""


def write_traces(
    tracing: Any, experiment: str, run: str, rows: Iterable[Mapping[str, Any]], metrics: Sequence[str], begun: int
) -> int:
    """Write a trace for each per-query record of a trial's run; return how many.

    `tracing` is MLflow's TracingClient, `begun` the time of the traces in milliseconds since the epoch.
    """
    spans: list[Any] = []
    count = 0
    for count, row in enumerate(rows, 1):
        trace = _Trace(experiment, run, row, metrics, begun)
        tracing.start_trace(trace.info())
        spans += trace.spans()
        if count % _BATCH == 0:
            tracing.log_spans(experiment, spans)
            spans = []
    if spans:
        tracing.log_spans(experiment, spans)
    return count


class _Trace:
    """One query of a trial."""

    def __init__(self, experiment: str, run: str, row: Mapping[str, Any], metrics: Sequence[str], begun: int) -> None:
        self._experiment, self._run, self._row, self._metrics = experiment, run, row, metrics
        self._begun = begun
        self._digest = hashlib.sha256(f"{run} {row['query_id']}".encode("utf-8", "surrogatepass")).digest()
        self.id = f"tr-{self._digest[:16].hex()}"

    def info(self) -> Any:
        """The trace without its spans."""
        from mlflow.entities import TraceInfo, TraceLocation
        from mlflow.entities.trace_state import TraceState

        return TraceInfo(
            trace_id=self.id,
            trace_location=TraceLocation.from_experiment_id(self._experiment),
            request_time=self._begun,
            state=TraceState.OK,
            request_preview=_safe(self._row["query"])[:1000],
            response_preview=self._marks,
            execution_duration=1,
            trace_metadata={"mlflow.sourceRun": self._run, "mlflow.trace_schema.version": "3"},
            tags={"mlflow.traceName": "query", "query_id": _safe(self._row["query_id"])[:250]},
            assessments=list(self._assessments()),
        )

    def spans(self) -> list[Any]:
        """The root span with the selection, the retriever's span, and a span for each step that dropped something."""
        asked = {"query": self._row["query"]}
        made = [
            self._span("query", "CHAIN", 0, asked, self._listed),
            self._span("selected passages", "RETRIEVER", 1, asked, self._passages),
        ]
        for at, (step, dropped) in enumerate(self._dropped.items(), 2):
            made.append(self._span(f"dropped by {step}", "RERANKER", at, asked, dropped))
        return made

    def _span(self, name: str, kind: str, at: int, inputs: Any, outputs: Any) -> Any:
        from mlflow.entities import Span

        attributes = {
            "mlflow.traceRequestId": self.id,
            "mlflow.spanType": kind,
            "mlflow.spanInputs": inputs,
            "mlflow.spanOutputs": outputs,
            **({"mlflow.experimentId": self._experiment} if at == 0 else {}),
        }
        when = self._begun * 1_000_000 + at
        return Span.from_dict(
            {
                "trace_id": base64.b64encode(self._digest[:16]).decode(),
                "span_id": base64.b64encode(self._span_id(at)).decode(),
                "parent_span_id": base64.b64encode(self._span_id(0)).decode() if at else None,
                "name": _safe(name),
                "start_time_unix_nano": when,
                "end_time_unix_nano": when + 1_000_000,
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "attributes": {key: _safe(json.dumps(value, ensure_ascii=False)) for key, value in attributes.items()},
                "events": [],
                "links": [],
            }
        )

    def _span_id(self, at: int) -> bytes:
        return hashlib.sha256(self._digest + bytes([at % 256])).digest()[:8]

    @property
    def _kept(self) -> Sequence[Mapping[str, Any]]:
        return self._row["kept"]  # type: ignore[no-any-return]

    @property
    def _marks(self) -> str:
        """At which ranks passages contain evidence, and how much evidence is lost."""
        lost = sum(item["outcome"] != "found" for item in self._row["evidence"])
        ranks = [str(rank) for rank, passage in enumerate(self._kept, 1) if passage["relevant"]]
        marks = f"✓ at {', '.join(ranks)} of {len(self._kept)}" if ranks else f"✗ in {len(self._kept)}"
        return f"{marks}; {lost} of {len(self._row['evidence'])} evidence items lost" if lost else marks

    @property
    def _listed(self) -> str:
        """The selection in Markdown, followed by the evidence that is lost."""
        lines = [
            f"{rank}. {'✓' if passage['relevant'] else '✗'} **{_place(passage)}** {_shortened(passage['text'])}"
            for rank, passage in enumerate(self._kept, 1)
        ]
        lost = [item for item in self._row["evidence"] if item["outcome"] != "found"]
        lines += [f"\nLost: {_place(item)} ({item['outcome']})" for item in lost]
        return "\n".join(lines) or "nothing selected"

    @property
    def _passages(self) -> list[dict[str, Any]]:
        return [
            {
                "page_content": passage["text"][:_LONGEST],
                "metadata": {
                    "doc_uri": _place(passage),
                    "rank": rank,
                    "score": passage["score"],
                    "tokens": passage["tokens"],
                    "relevant": passage["relevant"],
                },
                "id": _place(passage),
            }
            for rank, passage in enumerate(self._kept, 1)
        ]

    @cached_property
    def _dropped(self) -> dict[str, list[dict[str, Any]]]:
        steps: dict[str, list[dict[str, Any]]] = {}
        for passage in self._row["dropped"]:
            steps.setdefault(passage["step"], []).append(
                {"passage": _place(passage), "reason": passage["reason"], "score": passage["score"]}
            )
        return steps

    def _assessments(self) -> Iterator[Any]:
        """Scores, whether each passage holds evidence, the judges' verdicts with reasons, and the expected evidence."""
        from mlflow.entities import AssessmentSource, Expectation

        code = AssessmentSource("CODE", "harness")
        for name in self._metrics:
            value = self._row["scores"][name]
            if value is not None:
                yield self._feedback(metric_key(name), value, code)
        for rank, passage in enumerate(self._kept):
            why = "counts as relevant" if passage["relevant"] else "contains no evidence, or too little of it"
            about = {"metadata": {"chunk_index": str(rank)}, "span_id": self._span_id(1).hex(), "rationale": why}
            yield self._feedback("retrieval_relevance", "yes" if passage["relevant"] else "no", code, **about)
        yield from self._judgments()
        expected = [f"{_place(item)}: {item['outcome']}" for item in self._row["evidence"]]
        yield Expectation(
            name="expected_evidence", value=expected or ["none"], source=AssessmentSource("HUMAN", "data")
        )

    def _judgments(self) -> Iterator[Any]:
        from mlflow.entities import AssessmentSource

        for label, verdict in self._row.get("judges", {}).items():
            source = AssessmentSource("LLM_JUDGE", _safe(label))
            for finding in verdict["findings"]:
                rank = finding.get("rank")
                about: dict[str, Any] = {"metadata": {"item": _safe(str(finding.get("item", "")))[:250]}}
                if rank is not None:
                    about = {"metadata": {"chunk_index": str(rank - 1)}, "span_id": self._span_id(1).hex()}
                for judgment in finding["judgments"]:
                    why = _safe(judgment.get("why", ""))
                    failed = judgment.get("failed")
                    value = None if failed else str(judgment["grade"])
                    error = {"error": _safe(failed)} if failed else {}
                    yield self._feedback(f"{label} of a passage", value, source, rationale=why, **about, **error)

    def _feedback(self, name: str, value: Any, source: Any, **more: Any) -> Any:
        from mlflow.entities import Feedback

        return Feedback(name=name, value=value, source=source, trace_id=self.id, **more)


def _place(passage: Mapping[str, Any]) -> str:
    """A document with the span, if there is one."""
    if passage.get("start") is None:
        return _safe(passage["doc"])
    return _safe(f"{passage['doc']}:{passage['start']}-{passage['end']}")


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 200 else f"{words[:199]}…"


def _safe(text: str) -> str:
    """The text without secrets, and without halves of characters, which a database does not take."""
    return redact(text).encode("utf-8", "replace").decode()
