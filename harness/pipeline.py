"""One trial, stage by stage, each stage asked of the store before it is worked out."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from harness.cache import VectorCache
from harness.component import Embedder, Retriever, Selector, identity
from harness.dataset import Dataset, Manifest, load_dataset
from harness.dataset.load import Copies
from harness.errors import ConfigError
from harness.experiment import Trial
from harness.metrics import Items, Step, Trace, losses, parse_metric, score_queries
from harness.metrics.intervals import size, union
from harness.metrics.matching import Passage, Ranking
from harness.metrics.measures import SPAN_MEASURES
from harness.model import Embedded, Hit, Outcome, Rankings, TokenMap, Vectors
from harness.passages import Passages, augment_corpus, chunk_corpus
from harness.results import Picked, Selection, TrialResult
from harness.store import Artifact, Key, Store, digest
from harness.tokens import Tokenizer

CURVE_RANKS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50)
CURVE_TOKENS = (125, 250, 500, 1000, 2000, 4000)
CURVES = tuple(f"{measure}@{k}" for measure in ("recall", "precision", "ndcg") for k in CURVE_RANKS) + tuple(
    f"{measure}@{tokens}t" for measure in ("recall", "ndcg") for tokens in CURVE_TOKENS
)
"""Metrics scored for every trial besides those asked for, so that curves over rank and token budget can be drawn."""

LATENCY_QUERIES = 10
"""How many queries are timed one at a time; all others travel in one batch."""

_SLAB = 256
"""Texts embedded between two writes to the cache: what a killed launch can lose."""

Progress = Callable[[int], None]


class Pipeline:
    """The stages of all trials that share a corpus, a query set and a tokenizer.

    Nothing is read before a stage needs it: where all scores are stored, the corpus stays closed.
    """

    def __init__(
        self, manifest: Manifest, queries: str, store: Path, *, tokenizer: str, copies: Copies, final: bool = False
    ) -> None:
        self._manifest = manifest
        self._queries, self._copies, self._final = queries, copies, final
        self._tokenizer = Tokenizer(tokenizer)
        self.store = Store(store)
        self.vectors = VectorCache(store / "vectors.sqlite")
        self._passages: dict[str, Passages] = {}

    @cached_property
    def data(self) -> Dataset:
        return load_dataset(self._manifest.root, self._queries, copies=self._copies, final=self._final)

    # Addresses. Each names the settings of its own stage and the address of the stage before, so all of them are known
    # before anything has run.

    def _chunk_key(self, trial: Trial) -> Key:
        return {
            "stage": "chunk",
            "corpus": self._manifest.corpus.sha256,
            "tokenizer": trial.tokenizer,
            "chunker": identity(trial.chunker),
        }

    def _passages_key(self, trial: Trial) -> Key:
        return {"stage": "augment", "chunks": digest(self._chunk_key(trial)), "augmenter": identity(trial.augmenter)}

    def _index_key(self, trial: Trial, retriever: Retriever) -> Key:
        return {
            "stage": "index",
            "passages": digest(self._passages_key(trial)),
            "retriever": {**identity(retriever), "settings": retriever.index_settings()},
        }

    def _retrieve_key(self, trial: Trial, retriever: Retriever) -> Key:
        embedded = any(part.uses_vectors for part in (retriever, *retriever.parts))
        return {
            "stage": "retrieve",
            "passages": digest(self._passages_key(trial)),
            "queries": self._manifest.query_set(self._queries).sha256,
            "embedder": identity(trial.embedder) if embedded else None,
            "retriever": identity(retriever),
        }

    def _select_key(self, trial: Trial) -> Key:
        return {
            "stage": "select",
            "rankings": digest(self._retrieve_key(trial, trial.retriever)),
            "steps": [identity(step) for step in trial.selector],
        }

    def _score_key(self, trial: Trial) -> Key:
        return {
            "stage": "score",
            "version": 1,
            "selection": digest(self._select_key(trial)),
            "coverage": trial.coverage,
            "copies": trial.copies,
            "metrics": list(dict.fromkeys((*trial.metrics, *CURVES))),
        }

    def fingerprint(self, trial: Trial) -> str:
        """What identifies the trial's scores: its settings, its data by content, and the versions of its parts."""
        return digest(self._score_key(trial))

    def passages_address(self, trial: Trial) -> str:
        """What identifies the trial's chunked, augmented corpus."""
        return digest(self._passages_key(trial))

    def stored(self, trial: Trial) -> dict[str, bool]:
        """Which stages of a trial need no work."""
        keys = {
            "chunk": self._chunk_key(trial),
            "retrieve": self._retrieve_key(trial, trial.retriever),
            "select": self._select_key(trial),
            "score": self._score_key(trial),
        }
        return {stage: self.store.has(key) for stage, key in keys.items()}

    # Stages.

    @cached_property
    def maps(self) -> Mapping[str, TokenMap]:
        """The token map of each document; every document is tokenized once for all trials and launches."""

        def build() -> Artifact:
            maps = [self._tokenizer.starts(doc.text) for doc in self.data.documents]
            offsets = np.cumsum([0, *(len(starts) for starts in maps)])
            return Artifact({"starts": np.concatenate(maps).astype(np.int32), "offsets": offsets})

        key = {"stage": "tokenize", "corpus": self._manifest.corpus.sha256, "tokenizer": self._tokenizer.name}
        arrays = self.store.get(key, build).arrays
        starts, offsets = arrays["starts"].astype(np.int64), arrays["offsets"].tolist()
        bounds = zip(self.data.documents, offsets, offsets[1:], strict=False)
        return {doc.id: TokenMap(starts[lo:hi]) for doc, lo, hi in bounds}

    def passages(self, trial: Trial) -> Passages:
        """The chunked, augmented corpus of a trial."""
        key = self._passages_key(trial)
        address = digest(key)
        if address not in self._passages:
            chunks = self.store.get(self._chunk_key(trial), lambda: chunk_corpus(trial.chunker, self.data, self.maps))
            contexts = None
            if trial.augmenter.name() != "none":
                contexts = self.store.get(
                    key, lambda: augment_corpus(trial.augmenter, self.data, chunks, self._tokenizer.count)
                )
            self._passages[address] = Passages(self.data, self.maps, chunks, contexts)
        return self._passages[address]

    def tokens(self, text: str) -> int:
        """The tokens of a text, in the experiment's tokenizer."""
        return self._tokenizer.count(text)

    @cached_property
    def query_texts(self) -> list[str]:
        return [query.text for query in self.data.query_set.queries]

    def missing(self, embedder: Embedder, texts: Sequence[str], *, queries: bool = False) -> list[str]:
        """The distinct texts that have no vector yet."""
        return self.vectors.missing(_space(embedder, queries), texts)

    def embed(
        self, embedder: Embedder, texts: Sequence[str], *, queries: bool = False, progress: Progress | None = None
    ) -> Embedded:
        """Vectors for all texts: those missing are worked out, the longest first, and cached slab by slab."""
        space = _space(embedder, queries)
        found = self.vectors.get(space, texts)
        if found is not None:
            return found
        left = sorted(self.vectors.missing(space, texts), key=lambda text: (-len(text), text))
        for start in range(0, len(left), _SLAB):
            slab = left[start : start + _SLAB]
            self.vectors.put(space, slab, embedder.embed(slab, queries=queries))
            self.store.built["embed"] = self.store.built.get("embed", 0) + len(slab)
            if progress:
                progress(len(slab))
        found = self.vectors.get(space, texts)
        return found if found is not None else embedder.embed(texts, queries=queries)

    def query_latency(self, embedder: Embedder) -> Artifact:
        """Milliseconds to embed one query at a time, for the first `LATENCY_QUERIES` queries; none where it costs
        money.
        """

        def build() -> Artifact:
            if embedder.metered:
                return Artifact({"ms": np.zeros(0)})
            embedder.warm()
            texts = self.query_texts[:LATENCY_QUERIES]
            embedder.embed(texts[:1], queries=True)
            return Artifact({"ms": np.array(_timed(lambda text: embedder.embed([text], queries=True), texts))})

        queries = self._manifest.query_set(self._queries).sha256
        return self.store.get({"stage": "time", "embedder": identity(embedder), "queries": queries}, build)

    def rankings(self, trial: Trial, retriever: Retriever | None = None) -> Artifact:
        """What the retriever ranks for every query: arrays `ids`, `scores`, `offsets`, `ms` of the timed queries."""
        retriever = retriever or trial.retriever
        return self.store.get(self._retrieve_key(trial, retriever), lambda: self._retrieve(trial, retriever))

    def _retrieve(self, trial: Trial, retriever: Retriever) -> Artifact:
        if retriever.parts:
            return self._fuse(trial, retriever)
        passages = self.passages(trial)
        index = self.store.get(self._index_key(trial, retriever), lambda: retriever.index(passages.texts))
        corpus = queries = None
        truncated = 0
        size_in_bytes = index.nbytes
        if retriever.uses_vectors:
            embedded = self.embed(trial.embedder, passages.texts)
            corpus, truncated = embedded.vectors, int(embedded.truncated.sum())
            queries = self.embed(trial.embedder, self.query_texts, queries=True).vectors
            size_in_bytes += corpus.nbytes
        ranked = retriever.search(index, corpus, self.query_texts, queries)
        _check_rankings(retriever, ranked, len(passages), len(self.query_texts))

        def one(at: int) -> Any:
            return retriever.search(index, corpus, self.query_texts[at : at + 1], _row(queries, at))

        ms = _timed(one, range(min(LATENCY_QUERIES, len(self.query_texts))))
        facts = {"chunks": len(passages), "index_bytes": size_in_bytes, "truncated": truncated}
        return Artifact({**ranked._asdict(), "ms": np.array(ms)}, facts)

    def _fuse(self, trial: Trial, retriever: Any) -> Artifact:
        parts = [self.rankings(trial, part) for part in retriever.parts]
        ranked = [_ranked(part) for part in parts]
        count = len(self.query_texts)
        rows = [retriever.fuse([part.row(query) for part in ranked]) for query in range(count)]
        fused = Rankings.of(rows)
        _check_rankings(retriever, fused, len(self.passages(trial)), count)
        merging = _timed(
            lambda at: retriever.fuse([part.row(at) for part in ranked]), range(min(LATENCY_QUERIES, count))
        )
        facts = {
            "chunks": parts[0].data["chunks"],
            "index_bytes": sum(part.data["index_bytes"] for part in parts),
            "truncated": max(part.data["truncated"] for part in parts),
        }
        return Artifact({**fused._asdict(), "ms": np.array(merging) + sum(part.arrays["ms"] for part in parts)}, facts)

    def selection(self, trial: Trial) -> Artifact:
        """What each query ends up with and what was dropped on the way, flat; `selections` reads it."""
        return self.store.get(self._select_key(trial), lambda: self._select(trial))

    def _select(self, trial: Trial) -> Artifact:
        passages, ranked = self.passages(trial), _ranked(self.rankings(trial))
        table = _Table()
        ms: list[float] = []
        for number, query in enumerate(self.data.query_set.queries):
            ids, scores = ranked.row(number)
            hits = [Hit(passages.chunk(at), score) for at, score in zip(ids.tolist(), scores.tolist(), strict=True)]
            # A selector works on what a live system would know: never on the evidence or the answer.
            blind = replace(query, evidence=(), answer=None)
            begin = time.perf_counter()
            for at, step in enumerate(trial.selector):
                outcome = step.select(blind, hits)
                _check_outcome(step, hits, outcome)
                table.step(at, hits, outcome.kept)
                for drop in outcome.dropped:
                    table.add(number, drop.hit, at, drop.reason)
                hits = outcome.kept
            if number < LATENCY_QUERIES:
                ms.append((time.perf_counter() - begin) * 1000)
            for hit in hits:
                table.add(number, hit, -1, "")
        return table.artifact(ms, _labels(trial.selector), len(self.query_texts), self.data.number)

    def selections(self, trial: Trial) -> list[Selection]:
        """`selection` as records, one per query."""
        artifact = self.selection(trial)
        names, reasons = artifact.data["steps"], artifact.data["reasons"]
        made = [Selection([], []) for _ in range(artifact.data["queries"])]
        ids = [doc.id for doc in self.data.documents]
        columns = (artifact.arrays[name].tolist() for name in _Table.COLUMNS)
        for query, doc, start, end, score, tokens, context_tokens, step, reason in zip(*columns, strict=True):
            span = (ids[doc], start, end, score, tokens, context_tokens)
            if step < 0:
                made[query].kept.append(Picked(*span))
            else:
                made[query].dropped.append(Picked(*span, names[step], reasons[reason]))
        return made

    def scores(self, trial: Trial) -> Artifact:
        """Per-query values of every metric, the fate of every evidence item, and what the selections cost."""
        return self.store.get(self._score_key(trial), lambda: self._score(trial))

    def _score(self, trial: Trial) -> Artifact:
        queries = self.data.query_set.queries
        passages, selected = self.passages(trial), self.selections(trial)
        items = [Items.of(query, trial.coverage) for query in queries]
        kept = [[_passage(pick) for pick in selection.kept] for selection in selected]
        metrics = [parse_metric(name) for name in dict.fromkeys((*trial.metrics, *CURVES))]
        self._refuse_span_measures(trial)
        values = score_queries(metrics, items, kept, self.maps, passages.bearing)
        arrays = {f"metric:{name}": column for name, column in values.items()}
        arrays["context_tokens"] = np.array([sum(p.tokens + p.context_tokens for p in row) for row in kept], np.float64)
        arrays["redundancy"] = np.array([_redundancy(row) for row in kept])
        return Artifact(
            arrays,
            {
                "queries": [query.id for query in queries],
                "clusters": [query.cluster for query in queries],
                "fates": [list(fates) for fates in self._fates(trial, items, selected, kept)],
            },
        )

    def _fates(
        self, trial: Trial, items: Sequence[Items], selected: Sequence[Selection], kept: Sequence[list[Passage]]
    ) -> Iterator[list[str]]:
        passages, ranked = self.passages(trial), _ranked(self.rankings(trial))
        for number, (needed, selection, row) in enumerate(zip(items, selected, kept, strict=True)):

            def trace(number: int = number, needed: Items = needed, selection: Selection = selection) -> Trace:
                chunks = (passages.chunk(at) for at in ranked.row(number)[0].tolist())
                steps = [
                    Step(
                        label, step.spends_budget, [_passage(pick) for pick in selection.dropped if pick.step == label]
                    )
                    for label, step in zip(_labels(trial.selector), trial.selector, strict=True)
                ]
                candidates = [Passage(chunk.doc, chunk.start, chunk.end) for chunk in chunks]
                return Trace(passages.bearing(needed), candidates, steps)

            yield losses(needed, row, trace).fates

    def _refuse_span_measures(self, trial: Trial) -> None:
        asked = [name for name in trial.metrics if parse_metric(name).measure in SPAN_MEASURES]
        evident = [query for query in self.data.query_set.queries if query.evidence]
        if asked and evident and all(query.by_document for query in evident):
            raise ConfigError(
                f"metrics: {asked[0]} measures characters, but '{self.data.name}' has document evidence only; "
                "ask for recall, hit, mrr, ndcg, map or precision"
            )

    def rows(self, trial: Trial) -> Iterator[dict[str, Any]]:
        """Everything about each query: its text, evidence, scores, fates, and the passages kept and dropped."""
        scores = self.scores(trial)
        by_id = self.data.by_id
        for at, (query, selection) in enumerate(zip(self.data.query_set.queries, self.selections(trial), strict=True)):
            needed = Items.of(query, trial.coverage)
            kept = Ranking([_passage(pick) for pick in selection.kept], needed)
            relevant = {kept.passages[rank - 1] for rank in kept.relevant}
            yield {
                "query_id": query.id,
                "query": query.text,
                "type": query.metadata.get("type"),
                "evidence": [
                    {"doc": item.places[0].doc, "start": item.places[0].start, "end": item.places[0].end, "fate": fate}
                    for item, fate in zip(query.evidence, scores.data["fates"][at], strict=True)
                ],
                "scores": {name: _number(scores.arrays[f"metric:{name}"][at]) for name in trial.metrics},
                "kept": [
                    {
                        **pick._asdict(),
                        "relevant": _passage(pick) in relevant,
                        "text": by_id[pick.doc].text[pick.start : pick.end],
                    }
                    for pick in selection.kept
                ],
                "dropped": [pick._asdict() for pick in selection.dropped],
            }

    def result(self, trial: Trial, name: str) -> TrialResult:
        """The finished trial, worked out where needed."""
        scores, ranked, selection = self.scores(trial), self.rankings(trial), self.selection(trial)
        prefix = "metric:"
        values = {key.removeprefix(prefix): column for key, column in scores.arrays.items() if key.startswith(prefix)}
        embedding = self.query_latency(trial.embedder).arrays["ms"] if trial.uses_vectors else np.zeros(0)
        parts = [part for part in (embedding, ranked.arrays["ms"], selection.arrays["ms"]) if len(part)]
        total = np.sum(parts, axis=0)
        efficiency = {
            "chunks": float(ranked.data["chunks"]),
            "index_bytes": float(ranked.data["index_bytes"]),
            "context_tokens": float(scores.arrays["context_tokens"].mean()),
            "passages": float((selection.arrays["step"] < 0).sum() / max(1, selection.data["queries"])),
            "redundancy": float(scores.arrays["redundancy"].mean()),
            "empty_results": float((scores.arrays["context_tokens"] == 0).sum()),
            **{f"latency_{name}": float(np.percentile(total, at)) for name, at in (("p50_ms", 50), ("p95_ms", 95))},
            **{
                f"retrieve_{name}": float(np.percentile(ranked.arrays["ms"], at))
                for name, at in (("p50_ms", 50), ("p95_ms", 95))
            },
            **{
                f"select_{name}": float(np.percentile(selection.arrays["ms"], at))
                for name, at in (("p50_ms", 50), ("p95_ms", 95))
            },
        }
        if len(embedding):
            efficiency |= {
                f"embed_{name}": float(np.percentile(embedding, at)) for name, at in (("p50_ms", 50), ("p95_ms", 95))
            }
        for label, facts in zip(selection.data["steps"], selection.data["statistics"], strict=False):
            efficiency |= {f"step_{label}_{fact}": value for fact, value in facts.items()}
        warnings = []
        if ranked.data["truncated"]:
            count = f"{ranked.data['truncated']} of {ranked.data['chunks']} chunks"
            warnings.append(
                f"{count} are longer than the window of {trial.embedder.name()}, which saw only their beginning"
            )
        data = scores.data
        return TrialResult(
            name,
            self.fingerprint(trial),
            trial.params(),
            data["queries"],
            data["clusters"],
            values,
            data["fates"],
            efficiency,
            warnings,
            trial.identity(),
        )


class _Table:
    """The rows of a selection artifact while it is being made."""

    COLUMNS = ("query", "doc", "start", "end", "score", "tokens", "context_tokens", "step", "reason")

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, int, int, float, int, int, int, int]] = []
        self._reasons: dict[str, int] = {}
        self._statistics: dict[int, list[float]] = {}

    def add(self, query: int, hit: Hit, step: int, reason: str) -> None:
        chunk = hit.chunk
        code = self._reasons.setdefault(reason, len(self._reasons))
        text_tokens = chunk.tokens - chunk.context_tokens
        self._rows.append(
            (query, chunk.doc, chunk.start, chunk.end, hit.score, text_tokens, chunk.context_tokens, step, code)
        )

    def step(self, at: int, before: Sequence[Hit], after: Sequence[Hit]) -> None:
        totals = self._statistics.setdefault(at, [0.0] * 5)
        facts = (len(before), len(after), sum(hit.chunk.tokens for hit in after), sum(hit.score for hit in after), 1)
        for place, fact in enumerate(facts):
            totals[place] += fact

    def artifact(self, ms: list[float], steps: list[str], queries: int, number: Mapping[str, int]) -> Artifact:
        columns: list[Any] = [list(column) for column in zip(*self._rows, strict=True)] or [[] for _ in self.COLUMNS]
        columns[1] = [number[doc] for doc in columns[1]]
        arrays = {
            name: np.array(column, np.float64 if name == "score" else np.int32)
            for name, column in zip(self.COLUMNS, columns, strict=True)
        }
        statistics = [
            {"input": given / n, "kept": kept / n, "tokens": tokens / n, "score": score / kept if kept else 0.0}
            for given, kept, tokens, score, n in self._statistics.values()
        ]
        data = {"steps": steps, "reasons": list(self._reasons), "queries": queries, "statistics": statistics}
        return Artifact({**arrays, "ms": np.array(ms)}, data)


def _labels(steps: Sequence[Selector]) -> list[str]:
    """The steps' names, numbered where a name occurs again."""
    names = [step.name() for step in steps]
    return [
        name if name not in names[:at] else f"{name}_{names[: at + 1].count(name)}" for at, name in enumerate(names)
    ]


def _space(embedder: Embedder, queries: bool) -> str:
    return digest({"embedder": identity(embedder), "queries": queries})


def _ranked(artifact: Artifact) -> Rankings:
    return Rankings(*(artifact.arrays[name] for name in Rankings._fields))


def _row(vectors: Vectors | None, at: int) -> Vectors | None:
    return None if vectors is None else vectors[at : at + 1]


def _timed(work: Callable[[Any], Any], inputs: Sequence[Any]) -> list[float]:
    """Milliseconds of each call."""
    taken = []
    for value in inputs:
        begin = time.perf_counter()
        work(value)
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def _number(value: float) -> float | None:
    """A JSON number; None where a query has no value."""
    return None if np.isnan(value) else float(value)


def _passage(pick: Picked) -> Passage:
    return Passage(pick.doc, pick.start, pick.end, pick.tokens, pick.context_tokens)


def _redundancy(row: Sequence[Passage]) -> float:
    """The share of the selected characters that an earlier passage already holds."""
    shown = sum(passage.end - passage.start for passage in row)
    by_doc: dict[str, list[tuple[int, int]]] = {}
    for passage in row:
        by_doc.setdefault(passage.doc, []).append((passage.start, passage.end))
    return 1 - sum(size(union(parts)) for parts in by_doc.values()) / shown if shown else 0.0


def _check_rankings(retriever: Retriever, ranked: Rankings, chunks: int, queries: int) -> None:
    """Refuse what a researcher's retriever must not return, before a number is made of it."""
    where = f"retriever {retriever.name()}"
    if ranked.queries != queries:
        raise ConfigError(f"{where}: returned rankings for {ranked.queries} queries instead of {queries}")
    if not np.isfinite(ranked.scores).all():
        raise ConfigError(f"{where}: returned a score that is not a number")
    if len(ranked.ids) and not (ranked.ids.min() >= 0 and ranked.ids.max() < chunks):
        raise ConfigError(f"{where}: returned a chunk number outside 0..{chunks - 1}")
    for query in range(queries):
        ids, _ = ranked.row(query)
        if len(np.unique(ids)) < len(ids):
            raise ConfigError(f"{where}: returned a chunk twice for query number {query + 1}")


def _check_outcome(step: Selector, hits: Sequence[Hit], outcome: Outcome) -> None:
    if not isinstance(outcome, Outcome):
        raise ConfigError(
            f"selector {step.name()}: select must return an Outcome(kept, dropped), not {type(outcome).__name__}"
        )
    if len(outcome.kept) + len(outcome.dropped) > len(hits):
        raise ConfigError(f"selector {step.name()}: returned more hits than it was given")
