"""One trial, stage by stage, each stage asked of the store before it is worked out."""

import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from harness.components.llm_roles import LlmAugmenter, LlmChunker, few_enough
from harness.components.roles import Embedder, EmbeddingChunker, Fusion, Recorded, Retriever, Searched, asks_models
from harness.core.blame import blamed, understood
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings, Row, unit_rows
from harness.core.records import Case, Chunk, Document, Spans, TokenMap
from harness.core.timing import TIMED_QUERIES, milliseconds
from harness.core.tokenizer import Tokenizer, use_bundled_ranks
from harness.data.dataset import Dataset, load_dataset, verify
from harness.data.manifest import Copies, Manifest
from harness.evaluation.results import Selection
from harness.experiment.trial import Trial
from harness.llm import Archive, Task, Written, stored
from harness.run.stages.cache_keys import Addresses
from harness.run.stages.embed import Embeddings
from harness.run.stages.passages import (
    Cut,
    Passages,
    augment_corpus,
    chunk_corpus,
    context_artifact,
    spans_by_document,
    tilings_of,
)
from harness.run.stages.rerank import scores
from harness.run.stages.score import query_rows, relevance, score_trial, scored_metrics
from harness.run.stages.select import Means, Walk, read_selections
from harness.storage.digest import canonical, digest
from harness.storage.model_outputs import Pair, ScoreCache, VectorCache
from harness.storage.store import Artifact, Store

_CHUNKINGS = 4
"""Chunked corpora kept in memory, each about as large as the corpus; trials of one chunking follow each other."""

ARCHIVE = "answers.sqlite"
"""The file in the store that holds what language models answered."""


class Pipeline:
    """The stages of all trials that share a corpus, a query set and a tokenizer.

    Nothing is read before a stage needs it: where all scores are stored, the corpus stays closed. Not for several
    threads at once; each makes its own.
    """

    def __init__(
        self, manifest: Manifest, queries: str, store: Path, *, tokenizer: str, copies: Copies, final: bool = False
    ) -> None:
        # Here, since every process that does any work comes by: splitters of others use tiktoken too.
        use_bundled_ranks()
        self._manifest = manifest
        self._queries, self._copies, self._final = queries, copies, final
        self._tokenizer = Tokenizer(tokenizer)
        self._at = Addresses(manifest, queries, self._tokenizer.identity)
        self.store = Store(store)
        self.vectors = Embeddings(VectorCache(store / "vectors.sqlite"), self.store.built)
        self.archive = Archive(store / ARCHIVE)
        self.scored = ScoreCache(store / "scores.sqlite")
        self._passages: OrderedDict[str, Passages] = OrderedDict()

    @cached_property
    def data(self) -> Dataset:
        return load_dataset(self._manifest.root, self._queries, copies=self._copies, final=self._final)

    @cached_property
    def query_texts(self) -> list[str]:
        return [query.text for query in self.data.query_set.queries]

    def fingerprint(self, trial: Trial) -> str:
        """What identifies the trial's scores: its settings, its data by content, and the versions of its parts."""
        return digest(self._at.scores(trial, scored_metrics(trial)))

    def chunks_address(self, trial: Trial) -> str:
        """What identifies the trial's chunked corpus."""
        return digest(self._at.chunks(trial))

    def passages_address(self, trial: Trial) -> str:
        """What identifies the trial's chunked, augmented corpus."""
        return digest(self._at.passages(trial))

    def stored(self, trial: Trial) -> dict[str, bool]:
        """Which stages of a trial need no work."""
        keys = {
            "chunk": self._at.chunks(trial),
            "retrieve": self._at.rankings(trial, trial.retriever),
            "select": self._at.selection(trial),
            "score": self._at.scores(trial, scored_metrics(trial)),
        }
        return {stage: self.store.has(key) for stage, key in keys.items()}

    @cached_property
    def maps(self) -> Mapping[str, TokenMap]:
        """The token map of each document; every document is tokenized once for all trials and launches."""

        def build() -> Artifact:
            maps = [self._tokenizer.starts(doc.text) for doc in self.data.documents]
            offsets = np.cumsum([0, *(len(starts) for starts in maps)])
            return Artifact({"starts": np.concatenate(maps).astype(np.int32), "offsets": offsets})

        arrays = self.store.get(self._at.tokens(), build).arrays
        starts, offsets = arrays["starts"].astype(np.int64), arrays["offsets"].tolist()
        bounds = zip(self.data.documents, offsets, offsets[1:], strict=False)
        return {doc.id: TokenMap(starts[lo:hi]) for doc, lo, hi in bounds}

    def tokens(self, text: str) -> int:
        """The tokens of a text, in the experiment's tokenizer."""
        return self._tokenizer.count(text)

    # -- chunks

    def chunks(self, trial: Trial) -> Artifact:
        """The chunked corpus of a trial, without contexts."""

        def build() -> Artifact:
            chunker = trial.chunker
            if isinstance(chunker, EmbeddingChunker):
                return chunk_corpus(chunker, self.data, self.maps, self._cut_by_vectors(trial.embedder, chunker))
            if isinstance(chunker, LlmChunker):
                return self._cut_by_answers(chunker)
            return chunk_corpus(chunker, self.data, self.maps, tilings_of(chunker))

        return self.store.get(self._at.chunks(trial), build)

    def uncut(self, trial: Trial) -> bool:
        """Whether models have yet to say where the trial's chunks begin and end."""
        modelled = isinstance(trial.chunker, EmbeddingChunker | LlmChunker)
        return modelled and not self.store.has(self._at.chunks(trial))

    def _tokenized(self) -> Iterator[Document]:
        for doc in self.data.documents:
            yield replace(doc, tokens=self.maps[doc.id])

    def piece_texts(self, trial: Trial) -> list[str]:
        """What has to be embedded before the trial's corpus can be cut."""
        assert isinstance(trial.chunker, EmbeddingChunker)
        pieces = ((doc, trial.chunker.pieces(doc)) for doc in self._tokenized())
        return [doc.text[start:end] for doc, spans in pieces for start, end in spans]

    def _cut_by_vectors(self, embedder: Embedder, chunker: EmbeddingChunker) -> Cut:
        every = {doc.id: (doc, chunker.pieces(doc)) for doc in self._tokenized()}
        texts = {name: [doc.text[start:end] for start, end in spans] for name, (doc, spans) in every.items()}
        # All at once first: many documents are too short to fill a batch.
        self.vectors.fill(embedder, [text for row in texts.values() for text in row])

        def cut(doc: Document) -> list[Spans]:
            known, spans = every[doc.id]
            return [chunker.join(known, spans, unit_rows(self.vectors.embed(embedder, texts[doc.id]).vectors))]

        return cut

    def cut_tasks(self, trial: Trial) -> list[Task]:
        """What is asked about where to cut, in corpus order."""
        assert isinstance(trial.chunker, LlmChunker)
        return [task for doc in self._tokenized() for task in trial.chunker.tasks(doc)]

    def _cut_by_answers(self, chunker: LlmChunker) -> Artifact:
        by_document = {doc.id: chunker.tasks(doc) for doc in self._tokenized()}
        known = stored(self.archive, chunker, [task for tasks in by_document.values() for task in tasks])
        failed = few_enough(chunker, list(known.values()), "questions have no answer")

        def cut(doc: Document) -> list[Spans]:
            return [chunker.join(doc, [known[task] for task in by_document[doc.id]])]

        made = chunk_corpus(chunker, self.data, self.maps, cut)
        return replace(made, data={"asked": len(known), "failed": failed})

    # -- contexts

    def contexts(self, trial: Trial) -> Artifact | None:
        """The context of every chunk; None where the trial has none."""
        augmenter = trial.augmenter
        if augmenter.name() == "none":
            return None
        if isinstance(augmenter, LlmAugmenter):
            return self.store.get(self._at.passages(trial), lambda: self._written(trial, augmenter))
        return self.store.get(
            self._at.passages(trial),
            lambda: augment_corpus(augmenter, self.data, self.chunks(trial), self._tokenizer.count),
        )

    def unwritten(self, trial: Trial) -> bool:
        """Whether a model still has to write the trial's contexts."""
        return isinstance(trial.augmenter, LlmAugmenter) and not self.store.has(self._at.passages(trial))

    def context_tasks(self, trial: Trial) -> list[Task]:
        """What is asked for the context of each chunk, in corpus order."""
        assert isinstance(trial.augmenter, LlmAugmenter)
        by_document = spans_by_document(self.data, self.chunks(trial))
        return [task for doc, spans in by_document for task in trial.augmenter.tasks(doc, spans)]

    def _written(self, trial: Trial, augmenter: LlmAugmenter) -> Artifact:
        """The contexts a model has written, from the archive."""
        tasks = self.context_tasks(trial)
        known = stored(self.archive, augmenter, tasks)
        written = [known[task] for task in tasks]
        few_enough(augmenter, written, "chunks have no context")
        contexts = [outcome.text if isinstance(outcome, Written) else "" for outcome in written]
        return context_artifact(contexts, self._tokenizer.count)

    def passages(self, trial: Trial) -> Passages:
        """The chunked, augmented corpus of a trial."""
        address = self.passages_address(trial)
        if address not in self._passages:
            self._passages[address] = Passages(self.data, self.maps, self.chunks(trial), self.contexts(trial))
            if len(self._passages) > _CHUNKINGS:
                self._passages.popitem(last=False)
        return self._passages[address]

    def longest_chunks(self, trial: Trial, count: int) -> list[Chunk]:
        """The longest chunks of a trial's corpus, in characters, without contexts."""
        arrays = self.chunks(trial).arrays
        longest = np.argsort(arrays["start"] - arrays["end"], kind="stable")[:count]
        ids = (self.data.documents[number].id for number in arrays["doc"][longest])
        places = zip(ids, arrays["start"][longest].tolist(), arrays["end"][longest].tolist(), strict=True)
        return [Chunk(doc, start, end, self._text(doc, start, end)) for doc, start, end in places]

    def query_latency(self, embedder: Embedder) -> Artifact:
        """Milliseconds to embed one query at a time, for the timed queries; none where it costs money."""

        def build() -> Artifact:
            if embedder.metered:
                return Artifact({"ms": np.zeros(0)})
            texts = self.query_texts[:TIMED_QUERIES]
            embedder.embed(texts[:1], queries=True)  # loads the model, which is not to be timed
            return Artifact({"ms": np.array(milliseconds(lambda text: embedder.embed([text], queries=True), texts))})

        return self.store.get(self._at.latency(embedder), build)

    def rankings(self, trial: Trial, retriever: Retriever | None = None) -> Artifact:
        """What the retriever ranks for every query: arrays `ids`, `scores`, `offsets`, `ms` of the timed queries."""
        searched = retriever or trial.retriever
        work = self._fused if searched.parts else self._retrieved
        return self.store.get(self._at.rankings(trial, searched), lambda: work(trial, searched))

    def _retrieved(self, trial: Trial, retriever: Retriever) -> Artifact:
        if isinstance(retriever, Recorded):
            return self._replayed(trial, retriever)
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
            index = self.store.get(key, lambda: _artifact(f"{where}: index", retriever.index(indexed, corpus)))
        asked = list(texts)
        with blamed(f"{where}: {len(texts)} queries", asked):
            ranked = self._heeded(trial, retriever, lambda deeper: deeper.search(index, corpus, asked, queries))
        exact = retriever.exact()
        # An approximate index holds the vectors itself.
        facts["index_bytes"] = index.nbytes if exact is not None else facts["index_bytes"] + index.nbytes
        if exact is not None:
            facts["ann_recall"] = overlap(ranked, read_rankings(self.rankings(trial, exact)))

        def search_one(at: int) -> Rankings:
            row = None if queries is None else queries[at : at + 1]
            return retriever.search(index, corpus, texts[at : at + 1], row)

        return self._ranked(retriever, ranked, search_one, facts)

    def _heeded(self, trial: Trial, retriever: Retriever, search: Callable[[Retriever], Rankings]) -> Rankings:
        """The ranking without hits in documents that a query ignores, searched deeper by as many."""
        ignored = [query.ignore for query in self.data.query_set.queries]
        if not any(ignored):
            return search(retriever)
        chunks = self.passages(trial).of_documents({doc for row in ignored for doc in row})
        gone = [np.concatenate([np.zeros(0, np.int64), *(chunks[doc] for doc in row)]) for row in ignored]
        deeper = cast(Retriever, replace(cast(Any, retriever), depth=retriever.depth + max(map(len, gone))))
        found = search(deeper)
        rows: list[Row] = []
        for at, left_out in enumerate(gone):
            ids, scores = found.row(at)
            kept = np.flatnonzero(~np.isin(ids, left_out))[: retriever.depth]
            rows.append((ids[kept], scores[kept], found.reaches(at)[kept]))
        return Rankings.of(rows)

    def _replayed(self, trial: Trial, retriever: Recorded) -> Artifact:
        """What another system's run says, read from its file."""
        pinned = self._manifest.run(retriever.run)
        verify(pinned)
        passages, queries = self.passages(trial), [query.id for query in self.data.query_set.queries]
        starts = np.unique(passages.doc, return_index=True)
        first = {self.data.documents[doc].id: at for doc, at in zip(*(part.tolist() for part in starts), strict=True)}
        ranked = self._heeded(
            trial, retriever, lambda deeper: cast(Recorded, deeper).replay(pinned.path, queries, first)
        )
        _check(retriever, ranked, len(passages), queries)
        facts = {"chunks": len(passages), "index_bytes": 0, "truncated": 0}
        return Artifact({**ranked._asdict(), "ms": np.zeros(0)}, facts)

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
            searched = Searched(texts[at], index, passages, vector, corpus)
            with blamed(f"retriever {fusion.name()}: query '{self.data.query_set.queries[at].id}'"):
                return fusion.fuse([ranked.row(at) for ranked in lists], searched)

        facts: dict[str, float] = {
            "chunks": parts[0].data["chunks"],
            "index_bytes": sum(part.data["index_bytes"] for part in parts) + index.nbytes,
            "truncated": max(part.data["truncated"] for part in parts),
        }
        approximate = [part.data["ann_recall"] for part in parts if "ann_recall" in part.data]
        if approximate:
            facts["ann_recall"] = min(approximate)
        made = self._ranked(fusion, Rankings.of([fuse_one(at) for at in range(len(texts))]), fuse_one, facts)
        # A fused query waits for all its parts.
        total = made.arrays["ms"] + sum(part.arrays["ms"] for part in parts)
        return Artifact({**made.arrays, "ms": total}, made.data)

    def _ranked(
        self, retriever: Retriever, ranked: Rankings, one: Callable[[int], object], facts: dict[str, float]
    ) -> Artifact:
        _check(retriever, ranked, int(facts["chunks"]), [query.id for query in self.data.query_set.queries])
        ms = milliseconds(one, range(min(TIMED_QUERIES, len(self.query_texts))))
        return Artifact({**ranked._asdict(), "ms": np.array(ms)}, facts)

    # -- selection

    def selection(self, trial: Trial) -> Artifact:
        """What each query ends up with and what was dropped on the way."""

        def build() -> Artifact:
            walk = self._walk(trial)
            for place, step in enumerate(trial.selector):
                walk.take(place, step)
            return walk.artifact(trial.selector, self.data.number)

        return self.store.get(self._at.selection(trial), build)

    def _walk(self, trial: Trial) -> Walk:
        means = Means(
            lambda chunks: self.vectors.of_chunks(trial.embedder, chunks),
            lambda step, pairs: scores(step, pairs, self.scored, self.archive),
        )
        return Walk(self.data.query_set.queries, read_rankings(self.rankings(trial)), self.passages(trial), means)

    def unselected(self, trial: Trial) -> bool:
        """Whether the trial's selection is not stored and needs models beyond what retrieval needs."""
        return any(map(asks_models, trial.selector)) and not self.store.has(self._at.selection(trial))

    def pairs_at(self, trial: Trial, place: int) -> list[Pair]:
        """The pairs of query and passage that step number `place` sees, given the steps before it."""
        walk = self._walk(trial)
        for at, step in enumerate(trial.selector[:place]):
            walk.take(at, step)
        return walk.pairs()

    def selections(self, trial: Trial) -> list[Selection]:
        """`selection` as records, one per query."""
        return read_selections(self.selection(trial), [doc.id for doc in self.data.documents])

    def cases(self, trial: Trial) -> Iterator[Case]:
        """What judges see of each query: its evidence as text, and the passages selected."""
        for query, selection in zip(self.data.query_set.queries, self.selections(trial), strict=True):
            evidence = tuple(self._text(*item.places[0]) for item in query.evidence if not item.whole)
            passages = tuple(Chunk(p.doc, p.start, p.end, self._text(p.doc, p.start, p.end)) for p in selection.kept)
            # One query written in two Unicode forms is one query to a judge.
            yield Case(replace(query, text=unicodedata.normalize("NFC", query.text)), evidence, passages)

    def _text(self, doc: str, start: int, end: int) -> str:
        return self.data.by_id[doc].text[start:end]

    def scores(self, trial: Trial) -> Artifact:
        """Per-query values of every metric, the fate of every evidence item, and what the selections cost."""

        def build() -> Artifact:
            ranked = read_rankings(self.rankings(trial))
            return score_trial(trial, self.data, self.passages(trial), ranked, self.selections(trial), self.maps)

        return self.store.get(self._at.scores(trial, scored_metrics(trial)), build)

    def rows(self, trial: Trial) -> Iterator[dict[str, Any]]:
        """Everything about each query of a finished trial."""
        return query_rows(trial, self.data, self.scores(trial), self.selections(trial))

    def relevance(self, trial: Trial, retriever: Retriever) -> Artifact:
        """Which hits of a ranking are relevant by the evidence: arrays `query`, `scores`, `relevant`, one row a hit."""

        def build() -> Artifact:
            ranked = read_rankings(self.rankings(trial, retriever))
            queries, level = self.data.query_set.queries, trial.relevant_from
            return relevance(queries, ranked, self.passages(trial), relevant_from=level)

        return self.store.get(self._at.relevance(trial, retriever), build)


def overlap(ranked: Rankings, exact: Rankings) -> float:
    """The mean share, over queries, of an exact ranking's hits that another has too; 1 where there are none."""
    shares = []
    for query in range(exact.queries):
        wanted = exact.row(query)[0]
        shares.append(np.isin(wanted, ranked.row(query)[0]).mean() if len(wanted) else 1.0)
    return float(np.mean(shares)) if shares else 1.0


def read_rankings(artifact: Artifact) -> Rankings:
    """The rankings in a retrieve artifact."""
    return Rankings(*(artifact.arrays[name] for name in Rankings._fields))


_RANGES = {"unit": (0.0, 1.0), "cosine": (-1.0, 1.0)}


def _check(retriever: Retriever, ranked: Rankings, chunks: int, queries: Sequence[str]) -> None:
    """Refuse what a researcher's retriever must not return, before a number is made of it."""
    where = f"retriever {retriever.name()}"
    with understood(where, "Rankings of chunk numbers with scores"):
        _check_rankings(where, retriever, ranked, chunks, queries)


def _artifact(where: str, made: Any) -> Artifact:
    """What `index` returned, where it can be stored."""
    if not isinstance(made, Artifact):
        raise ConfigError(f"{where}: must return an Artifact, not {type(made).__name__}")
    with understood(where, "an Artifact of named arrays of numbers or text, and data that JSON can hold"):
        canonical(made.data)
        odd = [name for name, array in made.arrays.items() if array.dtype.kind == "O" or name == "__data__"]
    if odd:
        raise ConfigError(f"{where}: the array {odd[0]!r} cannot be stored; give it numbers or text, and another name")
    return made


def _check_rankings(where: str, retriever: Retriever, ranked: Any, chunks: int, queries: Sequence[str]) -> None:
    if not isinstance(ranked, Rankings):
        raise ConfigError(f"{where}: search must return Rankings, not {type(ranked).__name__}")
    if ranked.queries != len(queries):
        raise ConfigError(f"{where}: returned rankings for {ranked.queries} queries instead of {len(queries)}")
    if ranked.scores.dtype.kind not in "fiu" or not np.isfinite(ranked.scores).all():
        raise ConfigError(f"{where}: returned a score that is not a number")
    low, high = _RANGES.get(retriever.scale, (-np.inf, np.inf))
    for at, query in enumerate(queries):
        ids, scores = ranked.row(at)
        if len(ids) and not (ids.min() >= 0 and ids.max() < chunks):
            raise ConfigError(f"{where}: query '{query}': returned a chunk number outside 0..{chunks - 1}")
        if len(np.unique(ids)) < len(ids):
            raise ConfigError(f"{where}: query '{query}': returned a chunk twice")
        if len(scores) and not (scores.min() >= low - 1e-3 and scores.max() <= high + 1e-3):
            raise ConfigError(
                f"{where}: query '{query}': returned the scores {scores.min():.4g} to {scores.max():.4g}, though its "
                f"scale says {low:g} to {high:g}"
            )
