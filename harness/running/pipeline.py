"""The stages of a trial, each read from the store or computed and stored."""

import unicodedata
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from harness.components.llm_roles import LlmAugmenter, LlmChunker
from harness.components.roles import Embedder, EmbeddingChunker, Fusion, FusionContext, Replay, Retriever, asks_models
from harness.core.blame import blamed
from harness.core.rankings import Rankings, Row, unit_rows
from harness.core.records import Case, Chunk, Document, Query, TokenMap
from harness.core.tokenizer import Tokenizer, use_bundled_ranks
from harness.data.dataset import Dataset, load_dataset
from harness.data.manifest import Copies, Manifest
from harness.evaluation.results import Selection
from harness.experiment.trial import Trial
from harness.llm import AnswerCache, Task
from harness.running.stages.cache_keys import CacheKeys
from harness.running.stages.chunk import cut_by_answers, cut_by_vectors, written_contexts
from harness.running.stages.embed import Embeddings, query_latency
from harness.running.stages.passages import (
    Passages,
    augment_corpus,
    chunk_corpus,
    context_artifact,
    spans_by_document,
    tilings_of,
)
from harness.running.stages.ranking_checks import checked_artifact, overlap, read_rankings
from harness.running.stages.rerank import scores
from harness.running.stages.retrieve import replayed, timed, without_ignored
from harness.running.stages.score import query_rows, relevance, score_trial, scored_metrics
from harness.running.stages.select import ModelLookups, SelectionRun, read_selections
from harness.storage.digest import digest
from harness.storage.model_outputs import Pair, ScoreCache, VectorCache
from harness.storage.store import Artifact, Store

_CHUNKINGS = 4
"""Chunked corpora kept in memory, each about as large as the corpus. Trials of one chunking run one after another."""

ANSWERS = "answers.sqlite"
"""The file of the answer cache in the store."""


class Pipeline:
    """The stages of all trials that share a corpus, a query set and a tokenizer.

    Data are loaded when a stage first needs them: if all scores are stored, the corpus is never read. Not thread-safe:
    each thread needs its own pipeline.
    """

    def __init__(
        self, manifest: Manifest, queries: str, store: Path, *, tokenizer: str, copies: Copies, final: bool = False
    ) -> None:
        # Called here because every worker process creates a pipeline, and third-party splitters use tiktoken too.
        use_bundled_ranks()
        self._manifest = manifest
        self._queries, self._copies, self._final = queries, copies, final
        self._tokenizer = Tokenizer(tokenizer)
        self._at = CacheKeys(manifest, queries, self._tokenizer.identity)
        self.store = Store(store)
        self.vectors = Embeddings(VectorCache(store / "vectors.sqlite"), self.store.built)
        self.answers = AnswerCache(store / ANSWERS)
        self.scored = ScoreCache(store / "scores.sqlite")
        self._passages: OrderedDict[str, Passages] = OrderedDict()

    @cached_property
    def data(self) -> Dataset:
        """The documents, and the query set that the trials share."""
        return load_dataset(self._manifest.root, self._queries, copies=self._copies, final=self._final)

    @property
    def _asked(self) -> Sequence[Query]:
        return self.data.query_set.queries

    @cached_property
    def query_texts(self) -> list[str]:
        """The text of each query, in the order of the query set."""
        return [query.text for query in self._asked]

    def fingerprint(self, trial: Trial) -> str:
        """Return a digest that identifies the trial's scores: settings, data and versions of the components."""
        return digest(self._at.scores(trial, scored_metrics(trial)))

    def chunks_address(self, trial: Trial) -> str:
        """Return a digest that identifies the trial's chunked corpus."""
        return digest(self._at.chunks(trial))

    def passages_address(self, trial: Trial) -> str:
        """Return a digest that identifies the trial's chunked and augmented corpus."""
        return digest(self._at.passages(trial))

    def stored(self, trial: Trial) -> dict[str, bool]:
        """Return, by stage, whether the trial's output is stored."""
        keys = {
            "chunk": self._at.chunks(trial),
            "retrieve": self._at.rankings(trial, trial.retriever),
            "select": self._at.selection(trial),
            "score": self._at.scores(trial, scored_metrics(trial)),
        }
        return {stage: self.store.has(key) for stage, key in keys.items()}

    @cached_property
    def maps(self) -> Mapping[str, TokenMap]:
        """The token map of each document, by id. A document is tokenized once for all trials and launches."""

        def build() -> Artifact:
            maps = [self._tokenizer.starts(doc.text) for doc in self.data.documents]
            offsets = np.cumsum([0, *(len(starts) for starts in maps)])
            return Artifact({"starts": np.concatenate(maps).astype(np.int32), "offsets": offsets})

        arrays = self.store.get(self._at.tokens(), build).arrays
        starts, offsets = arrays["starts"].astype(np.int64), arrays["offsets"].tolist()
        bounds = zip(self.data.documents, offsets, offsets[1:], strict=False)
        return {doc.id: TokenMap(starts[lo:hi]) for doc, lo, hi in bounds}

    def tokens(self, text: str) -> int:
        """Return the number of tokens of a text, by the experiment's tokenizer."""
        return self._tokenizer.count(text)

    def chunks(self, trial: Trial) -> Artifact:
        """Return the chunked corpus of a trial, without contexts; see `chunk_corpus` for its arrays."""

        def build() -> Artifact:
            chunker = trial.chunker
            if isinstance(chunker, EmbeddingChunker):
                by_vectors = cut_by_vectors(chunker, trial.embedder, self._tokenized(), self.vectors)
                return chunk_corpus(chunker, self.data, self.maps, by_vectors)
            if isinstance(chunker, LlmChunker):
                return cut_by_answers(chunker, self.data, self._tokenized(), self.maps, self.answers)
            return chunk_corpus(chunker, self.data, self.maps, tilings_of(chunker))

        return self.store.get(self._at.chunks(trial), build)

    def needs_chunk_calls(self, trial: Trial) -> bool:
        """Whether the trial's chunker needs a model and its chunks are not stored."""
        modelled = isinstance(trial.chunker, EmbeddingChunker | LlmChunker)
        return modelled and not self.store.has(self._at.chunks(trial))

    def _tokenized(self) -> Iterator[Document]:
        for doc in self.data.documents:
            yield replace(doc, tokens=self.maps[doc.id])

    def piece_texts(self, trial: Trial) -> list[str]:
        """Return the texts whose vectors the trial's chunker needs, in corpus order."""
        assert isinstance(trial.chunker, EmbeddingChunker)
        pieces = ((doc, trial.chunker.pieces(doc)) for doc in self._tokenized())
        return [doc.text[start:end] for doc, spans in pieces for start, end in spans]

    def cut_tasks(self, trial: Trial) -> list[Task]:
        """Return the tasks that the trial's chunker has for its language model, in corpus order."""
        assert isinstance(trial.chunker, LlmChunker)
        return [task for doc in self._tokenized() for task in trial.chunker.tasks(doc)]

    def contexts(self, trial: Trial) -> Artifact | None:
        """Return the context of every chunk; None if the trial's augmenter is `none`."""
        augmenter = trial.augmenter
        if augmenter.name() == "none":
            return None
        if isinstance(augmenter, LlmAugmenter):

            def build() -> Artifact:
                contexts = written_contexts(augmenter, self.context_tasks(trial), self.answers)
                return context_artifact(contexts, self._tokenizer.count)

            return self.store.get(self._at.passages(trial), build)
        return self.store.get(
            self._at.passages(trial),
            lambda: augment_corpus(augmenter, self.data, self.chunks(trial), self._tokenizer.count),
        )

    def needs_context_calls(self, trial: Trial) -> bool:
        """Whether a language model writes the trial's contexts and they are not stored."""
        return isinstance(trial.augmenter, LlmAugmenter) and not self.store.has(self._at.passages(trial))

    def context_tasks(self, trial: Trial) -> list[Task]:
        """Return the tasks that the trial's augmenter has for its language model, in corpus order."""
        assert isinstance(trial.augmenter, LlmAugmenter)
        by_document = spans_by_document(self.data, self.chunks(trial))
        return [task for doc, spans in by_document for task in trial.augmenter.tasks(doc, spans)]

    def passages(self, trial: Trial) -> Passages:
        """Return the chunked and augmented corpus of a trial."""
        address = self.passages_address(trial)
        if address not in self._passages:
            self._passages[address] = Passages(self.data, self.maps, self.chunks(trial), self.contexts(trial))
            if len(self._passages) > _CHUNKINGS:
                self._passages.popitem(last=False)
        return self._passages[address]

    def longest_chunks(self, trial: Trial, count: int) -> list[Chunk]:
        """Return the `count` longest chunks of a trial's corpus, measured in characters, without contexts."""
        arrays = self.chunks(trial).arrays
        longest = np.argsort(arrays["start"] - arrays["end"], kind="stable")[:count]
        ids = (self.data.documents[number].id for number in arrays["doc"][longest])
        places = zip(ids, arrays["start"][longest].tolist(), arrays["end"][longest].tolist(), strict=True)
        return [Chunk(doc, start, end, self._text(doc, start, end)) for doc, start, end in places]

    def query_latency(self, embedder: Embedder) -> Artifact:
        """Return array `ms`: milliseconds to embed each timed query alone; empty if the embedder charges money."""
        return self.store.get(self._at.latency(embedder), lambda: query_latency(embedder, self.query_texts))

    def rankings(self, trial: Trial, retriever: Retriever | None = None) -> Artifact:
        """Return a retriever's rankings: the arrays of `Rankings`, and `ms`, the latency of each timed query."""
        searched = retriever or trial.retriever
        work = self._fused if searched.parts else self._retrieved
        return self.store.get(self._at.rankings(trial, searched), lambda: work(trial, searched))

    def _retrieved(self, trial: Trial, retriever: Retriever) -> Artifact:
        if isinstance(retriever, Replay):
            run, documents = self._manifest.run(retriever.run), self.data.documents
            return replayed(retriever, run, self._asked, documents, self.passages(trial))
        passages, texts = self.passages(trial), self.query_texts
        corpus = queries = None
        facts: dict[str, float] = {"chunks": len(passages), "index_bytes": 0, "truncated": 0}
        if retriever.uses_vectors:
            embedded = self.vectors.embed(trial.embedder, passages.texts)
            corpus = embedded.vectors
            queries = self.vectors.embed(trial.embedder, texts, queries=True).vectors
            facts |= {"index_bytes": corpus.nbytes, "truncated": int(embedded.truncated.sum())}
            for array in (corpus, queries):
                array.setflags(write=False)
        where, indexed = f"retriever {retriever.name()}", list(passages.texts)
        with blamed(f"{where}: index", indexed):
            key = self._at.index(trial, retriever)
            index = self.store.get(key, lambda: checked_artifact(f"{where}: index", retriever.index(indexed, corpus)))
        asked = list(texts)
        with blamed(f"{where}: {len(texts)} queries", asked):
            ranked = without_ignored(
                retriever, self._asked, passages, lambda deeper: deeper.search(index, corpus, asked, queries)
            )
        exact = retriever.exact()
        # An approximate index contains the vectors, so they are not counted twice.
        facts["index_bytes"] = index.nbytes if exact is not None else facts["index_bytes"] + index.nbytes
        if exact is not None:
            facts["ann_recall"] = overlap(ranked, read_rankings(self.rankings(trial, exact)))

        def search_one(at: int) -> Rankings:
            row = None if queries is None else queries[at : at + 1]
            return retriever.search(index, corpus, texts[at : at + 1], row)

        return timed(retriever, ranked, search_one, facts, self._asked)

    def _fused(self, trial: Trial, retriever: Retriever) -> Artifact:
        fusion = cast(Fusion, retriever)
        parts = [self.rankings(trial, part) for part in fusion.parts]
        lists = [read_rankings(part) for part in parts]
        passages, texts = self.passages(trial), self.query_texts
        index, corpus, queries = Artifact(), None, None
        if fusion.uses_vectors:
            corpus = unit_rows(self.vectors.embed(trial.embedder, passages.texts).vectors)
            queries = unit_rows(self.vectors.embed(trial.embedder, texts, queries=True).vectors)
        if type(fusion).index is not Retriever.index:
            index = self.store.get(self._at.index(trial, fusion), lambda: fusion.index(passages.texts, corpus))

        def fuse_one(at: int) -> Row:
            vector = None if queries is None else queries[at]
            searched = FusionContext(texts[at], index, passages, vector, corpus)
            with blamed(f"retriever {fusion.name()}: query '{self._asked[at].id}'"):
                return fusion.fuse([ranked.row(at) for ranked in lists], searched)

        facts: dict[str, float] = {
            "chunks": parts[0].data["chunks"],
            "index_bytes": sum(part.data["index_bytes"] for part in parts) + index.nbytes,
            "truncated": max(part.data["truncated"] for part in parts),
        }
        approximate = [part.data["ann_recall"] for part in parts if "ann_recall" in part.data]
        if approximate:
            facts["ann_recall"] = min(approximate)
        made = timed(fusion, Rankings.of([fuse_one(at) for at in range(len(texts))]), fuse_one, facts, self._asked)
        # A fused query waits for all its parts.
        total = made.arrays["ms"] + sum(part.arrays["ms"] for part in parts)
        return Artifact({**made.arrays, "ms": total}, made.data)

    def selection(self, trial: Trial) -> Artifact:
        """Return the passages kept for each query, and those dropped with step and reason."""

        def build() -> Artifact:
            selection_run = self._selection_run(trial)
            for place, step in enumerate(trial.selector):
                selection_run.take(place, step)
            return selection_run.artifact(trial.selector, self.data.number)

        return self.store.get(self._at.selection(trial), build)

    def _selection_run(self, trial: Trial) -> SelectionRun:
        lookups = ModelLookups(
            lambda chunks: self.vectors.of_chunks(trial.embedder, chunks),
            lambda step, pairs: scores(step, pairs, self.scored, self.answers),
        )
        return SelectionRun(self._asked, read_rankings(self.rankings(trial)), self.passages(trial), lookups)

    def needs_selection_calls(self, trial: Trial) -> bool:
        """Whether a selector step of the trial needs a model and the selection is not stored."""
        return any(map(asks_models, trial.selector)) and not self.store.has(self._at.selection(trial))

    def pairs_at(self, trial: Trial, place: int) -> list[Pair]:
        """Return the pairs of query and passage text that step number `place` receives from the steps before it."""
        selection_run = self._selection_run(trial)
        for at, step in enumerate(trial.selector[:place]):
            selection_run.take(at, step)
        return selection_run.pairs()

    def selections(self, trial: Trial) -> list[Selection]:
        """Return `selection` as records, one per query."""
        return read_selections(self.selection(trial), [doc.id for doc in self.data.documents])

    def cases(self, trial: Trial) -> Iterator[Case]:
        """Yield what judges see of each query: the query, the text of its evidence, and the selected passages."""
        for query, selection in zip(self._asked, self.selections(trial), strict=True):
            evidence = tuple(self._text(*item.places[0]) for item in query.evidence if not item.whole)
            passages = tuple(Chunk(p.doc, p.start, p.end, self._text(p.doc, p.start, p.end)) for p in selection.kept)
            # Judges treat two Unicode forms of the same query as one.
            yield Case(replace(query, text=unicodedata.normalize("NFC", query.text)), evidence, passages)

    def _text(self, doc: str, start: int, end: int) -> str:
        return self.data.by_id[doc].text[start:end]

    def scores(self, trial: Trial) -> Artifact:
        """Return the per-query values of every metric, the outcome of every evidence item, and the tokens selected."""

        def build() -> Artifact:
            ranked = read_rankings(self.rankings(trial))
            return score_trial(trial, self.data, self.passages(trial), ranked, self.selections(trial), self.maps)

        return self.store.get(self._at.scores(trial, scored_metrics(trial)), build)

    def rows(self, trial: Trial) -> Iterator[dict[str, Any]]:
        """Yield one record per query of a finished trial; see `query_rows`."""
        return query_rows(trial, self.data, self.scores(trial), self.selections(trial))

    def relevance(self, trial: Trial, retriever: Retriever) -> Artifact:
        """Return which hits of a ranking are relevant: arrays `query`, `scores` and `relevant`, one entry per hit."""

        def build() -> Artifact:
            ranked = read_rankings(self.rankings(trial, retriever))
            queries, level = self._asked, trial.relevant_from
            return relevance(queries, ranked, self.passages(trial), relevant_from=level)

        return self.store.get(self._at.relevance(trial, retriever), build)
