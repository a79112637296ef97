"""Contracts that every built-in component of a role must satisfy."""

import itertools
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import PostgresServer, postgres_server

from harness.components.augmenters import BUILTINS as AUGMENTERS
from harness.components.chunkers import BUILTINS as CHUNKERS
from harness.components.chunkers import (
    Chonkie,
    ClusterSemantic,
    Fixed,
    LangChain,
    LlamaIndex,
    Llm,
    Markdown,
    NoChunker,
    Paragraph,
    Recursive,
    Scales,
    Semantic,
    Sentence,
)
from harness.components.component import Component, identity
from harness.components.component import settings as settings_of
from harness.components.embedders import BUILTINS as EMBEDDERS
from harness.components.embedders import Api, Hashing
from harness.components.llm_roles import LlmChunker
from harness.components.retrievers import BM25, Chroma, Dense, Http, Hybrid, Pgvector
from harness.components.retrievers import BUILTINS as RETRIEVERS
from harness.components.retrievers import LangChain as RetrieverOfLangChain
from harness.components.retrievers import LlamaIndex as RetrieverOfLlamaIndex
from harness.components.roles import (
    Batch,
    Chunker,
    DatabaseRetriever,
    EmbeddingChunker,
    FusionContext,
    IndexPlace,
    PassageReplay,
    PassageRetriever,
    Replay,
    ScalesChunker,
    Selector,
    best_hits_first,
)
from harness.components.selectors import BUILTINS as SELECTORS
from harness.components.selectors import (
    MMR,
    Adaptive,
    ContextBudget,
    Dedup,
    Diversify,
    Elbow,
    MergeAdjacent,
    Normalize,
    Threshold,
    TokenBudget,
    TopK,
)
from harness.core.errors import ConfigError
from harness.core.records import Chunk, Document, Hit, Outcome, Query, Spans, TokenMap
from harness.core.tokenizer import Tokenizer
from harness.experiment.catalog import BUILTINS, component, describe, to_spec
from harness.llm import Completion, Failure, Prompter
from harness.running.stages.selection_run import _check

ALL = [cls for known in BUILTINS.values() for cls in known.values()]
WORDS = Tokenizer("words")


def made_of(cls: type[Component]) -> Any:
    """A component with its defaults; settings without a default, such as `model` and `now`, get a value."""
    required: dict[str, Any] = {"model": "some-model"} if issubclass(cls, Prompter) else {}
    required |= {"run": "some-run"} if issubclass(cls, Replay | PassageReplay) else {}
    required |= {"url": "http://127.0.0.1:9/search"} if issubclass(cls, Http) else {}
    named = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    required |= {"uri": "postgresql://127.0.0.1:9/search"} if issubclass(cls, Pgvector) else {}
    required |= {"factory": "my_search:retriever"} if "factory" in named else {}
    required |= {"labels": str(Path(__file__).parent / "labels.csv")} if "labels" in named else {}
    required |= {"now": "2026-01-31"} if "now" in named else {}
    return cls(**required)


TEXTS = [
    "",
    " \n\t ",
    "One.",
    "é ñ 你好 🧑‍🍳 ok",
    "a" * 5000,
    "No stop no end " * 300,
    "L1\r\n\r\nL2\r\n \r\nL3",
    "\x00a\x00 b",
]


@pytest.mark.parametrize("cls", ALL)
def test_declaration(cls: type[Component]) -> None:
    """Frozen, has a docstring, and survives a round trip through JSON."""
    made = made_of(cls)
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(made)[0].name if fields(made) else "x", 1)  # type: ignore[arg-type]
    assert (cls.__doc__ or "").strip()
    json.dumps(identity(made))
    assert component(cls.role, to_spec(made), where="x", base_dir=Path()) == made
    assert hash(made) == hash(made_of(cls))


@pytest.mark.parametrize("cls", ALL)
def test_runtime_settings_stay_out_of_the_identity(cls: type[Component]) -> None:
    """All other settings are in it."""
    for field in fields(cls):  # type: ignore[arg-type]
        assert (field.name in settings_of(made_of(cls))) != bool(field.metadata.get("runtime"))


def test_identities_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed default or version changes the address of stored results, so it must be deliberate.

    If results change, increase the version.
    """
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    golden = json.loads((Path(__file__).parent / "identities.json").read_text())
    known = {f"{cls.role}.{cls.name()}": identity(made_of(cls)) for cls in ALL}
    for cls in (*ADAPTERS, RetrieverOfLangChain, RetrieverOfLlamaIndex):
        assert known[f"{cls.role}.{cls.name()}"].pop("facts")  # the version of the library
    assert {name: known[name] for name in golden} == golden
    # What is stored of a judge is addressed by its prompts, so a new judge needs no entry.
    assert {name.split(".")[0] for name in known.keys() - golden.keys()} <= {"judge"}


@pytest.mark.parametrize("role", BUILTINS)
def test_descriptions(role: str) -> None:
    """The summary of every built-in ends with a full stop."""
    for name in BUILTINS[role]:
        assert describe(role, name).summary.endswith(".")


def document(text: str, tokenizer: Tokenizer = WORDS) -> Document:
    return Document("d", text, "Title", tokens=TokenMap(tokenizer.starts(text)))


ADAPTERS = (Chonkie, LangChain, LlamaIndex)
CHUNKER_CASES: list[Chunker] = [
    *(made_of(cls) for cls in CHUNKERS if cls not in (*ADAPTERS, NoChunker)),
    Fixed(7, 3),
    Fixed(5, 4, "characters"),
    Sentence(6, 3),
    Paragraph(5),
    Recursive(6, 2),
    Recursive(6, 2, (".", " "), keep_separator="start"),
    Recursive(9, 0, ("\n", " "), "characters"),
    Markdown(6),
    Semantic(8, 3, percentile=40),
    Semantic(9, threshold=0.2, window=2),
    ClusterSemantic(8, 2),
    ClusterSemantic(8, 2, bound="tokens"),
    ClusterSemantic(8, 2, separators=(".", " "), keep_separator="start"),
    Scales((3, 8, 40), "sentence"),
    Scales((4, 9), "markdown"),
    Llm("m", size=9, piece=3, window=4, margin=2),
]


def tilings(chunker: Chunker, doc: Document) -> list[Spans]:
    """The chunks of each scale; a simulated model cuts before every third piece and sometimes fails."""
    if isinstance(chunker, ScalesChunker):
        return chunker.tilings(doc)
    if isinstance(chunker, EmbeddingChunker):
        pieces = chunker.pieces(doc)
        return [chunker.join(doc, pieces, Hashing(64).embed([doc.text[a:b] for a, b in pieces]).vectors)]
    if isinstance(chunker, LlmChunker):
        answers: list[Any] = []
        for number, task in enumerate(chunker.tasks(doc)):
            first, last = map(int, task.item.split("-"))
            wanted = Completion(tuple(str(at) for at in range(first, last) if at % 3 == 0))
            answers.append(Failure("timeout") if number % 4 == 3 else wanted)
        return [chunker.join(doc, answers)]
    return [chunker.split(doc)]


@pytest.mark.parametrize("chunker", CHUNKER_CASES, ids=repr)
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_chunkers_on_awkward_texts(chunker: Chunker, text: str) -> None:
    """Empty, blank, one word, no boundary, CRLF, NUL."""
    check_spans(chunker, text)


@pytest.mark.parametrize("chunker", CHUNKER_CASES, ids=repr)
@given(text=st.text(st.sampled_from("ab é.\n\r\t #你🧑\u200d🍳!|-"), max_size=120))
@settings(max_examples=60, deadline=None)
def test_chunkers_on_any_text(chunker: Chunker, text: str) -> None:
    """Spans are in range and in order, cover every character that is not blank, and none contains the next one."""
    check_spans(chunker, text)


@pytest.mark.parametrize("chunker", CHUNKER_CASES, ids=repr)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=40, deadline=None)
def test_chunkers_on_any_unicode(chunker: Chunker, text: str) -> None:
    """All of Unicode, with a byte-level tokenizer."""
    check_spans(chunker, text, Tokenizer("o200k_base"))


def check_spans(chunker: Chunker, text: str, tokenizer: Tokenizer = WORDS) -> None:
    doc = document(text, tokenizer)
    made = tilings(chunker, doc)
    assert made == tilings(chunker, doc)
    sizes = getattr(chunker, "sizes", None) or (getattr(chunker, "size", None),)
    for spans, size in zip(made, sizes, strict=True):
        check_tiling(doc, [span for span in spans if text[span[0] : span[1]].strip()])
        if size is not None and getattr(chunker, "unit", getattr(chunker, "bound", "tokens")) == "tokens":
            tokens = doc.token_map()
            for start, end in spans:
                # The tokens of one character cannot be split, so a single character may exceed the size.
                assert tokens.count(start, end) <= size or tokens.count(start, end - 1) == 0


def check_tiling(doc: Document, spans: Spans) -> None:
    covered: set[int] = set()
    for start, end in spans:
        assert 0 <= start < end <= len(doc.text)
        covered |= set(range(start, end))
    assert all(at in covered for at, character in enumerate(doc.text) if not character.isspace())
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    for (start, end), (later, last) in itertools.pairwise(spans):
        assert not (start >= later and end <= last)
        assert not (later >= start and last <= end)


@pytest.mark.parametrize("cls", [cls for cls in AUGMENTERS if not issubclass(cls, Prompter)])
def test_augmenters_give_a_context_per_span(cls: Any) -> None:
    """One string per span, the same each time, for any text."""
    for text in TEXTS:
        spans = [(0, len(text) // 2), (len(text) // 2, len(text))]
        contexts = cls().augment(document(text), spans)
        assert len(contexts) == 2
        assert contexts == cls().augment(document(text), spans)
        assert all(isinstance(context, str) for context in contexts)


@pytest.mark.parametrize("cls", [cls for cls in EMBEDDERS if cls is not Api])
def test_embedders_do_not_depend_on_the_batch(cls: Any) -> None:
    """The same text has the same vector, bit for bit, alone, among others, and in another order; empty texts too."""
    texts = [*TEXTS, *(f"Rest the dough for {n} minutes. " * (n % 9 + 1) for n in range(25))]
    together = cls().embed(texts)
    assert together.vectors.dtype == np.float32
    assert np.isfinite(together.vectors).all()
    assert len(together.truncated) == len(texts)
    backwards = cls().embed(texts[::-1]).vectors[::-1]
    assert np.array_equal(together.vectors, backwards)
    for at in (0, 3, 4, 20):
        assert np.array_equal(cls().embed([texts[at]]).vectors[0], together.vectors[at])
    assert len(cls().embed([]).vectors) == 0


# A recorded ranking is not searched; tests/components/test_trec_run.py replays one.
SEARCHING = [cls for cls in RETRIEVERS if not issubclass(cls, Replay | PassageRetriever)]
RETRIEVER_CASES = [*(cls(depth=6) for cls in SEARCHING), Dense(6, ann="hnsw"), Dense(6, ann="ivf", lists=4, probes=2)]
RETRIEVER_CASES += [BM25(6, variant="okapi", engine="rank_bm25"), Hybrid(6, fusion="weighted"), Dense(6, "dot")]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("postgres") / "data") as server:
        yield server


@pytest.mark.parametrize("retriever", RETRIEVER_CASES, ids=repr)
def test_retrievers(retriever: Any, request: pytest.FixtureRequest) -> None:
    """At most `depth` distinct chunks per query, best first, ties in chunk order, repeatable; also with no chunks."""
    if isinstance(retriever, Pgvector):
        retriever = replace(retriever, uri=request.getfixturevalue("postgres").url)
    texts = [f"chunk {n % 7} about {WORDS_OF_TOPIC[n % 5]}" for n in range(30)]
    queries = ["about salt", "", "nothing known", "chunk 3 about rye", "ägypten 🧑‍🍳"]
    for corpus in (texts, texts[:1], []):
        rows = ranked(retriever, corpus, queries)
        if not isinstance(retriever, Chroma):  # whose graph is another one each time
            assert rows == ranked(retriever, corpus, queries)
        for ids, scores in rows:
            assert len(ids) == len(set(ids)) <= min(6, len(corpus))
            assert all(
                a > b or (a == b and i < j) for a, b, i, j in zip(scores, scores[1:], ids, ids[1:], strict=False)
            )
            if retriever.scale == "unit":
                assert all(0 <= score <= 1 for score in scores)


WORDS_OF_TOPIC = ["salt", "rye", "oven steam", "salt and rye", "butter"]


@dataclass
class Lines:
    """A corpus of one-line documents."""

    texts: list[str]

    def __post_init__(self) -> None:
        n = len(self.texts)
        self.doc, self.start, self.scale = np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.end = np.array([len(text) for text in self.texts], np.int64)
        self.tokens = np.array([WORDS.count(text) for text in self.texts], np.int64)

    def count(self, doc: int, start: int, end: int) -> int:
        return WORDS.count(self.texts[doc][start:end])

    def blank(self, doc: int, start: int, end: int) -> bool:
        return not self.texts[doc][start:end].strip()


def ranked(retriever: Any, texts: list[str], queries: list[str]) -> list[tuple[list[int], list[float]]]:
    vectors = Hashing(64).embed(texts).vectors if texts else np.empty((0, 64), np.float32)
    asked = Hashing(64).embed(queries).vectors
    if retriever.database:
        return in_database(retriever.database, texts, vectors, queries, asked)
    own = retriever.index(texts, vectors)
    if retriever.parts:
        parts = [ranked(part, texts, queries) for part in retriever.parts]
        rows = []
        for at, found in enumerate(zip(*parts, strict=True)):
            lists = [(np.array(row[0], np.int64), np.array(row[1])) for row in found]
            rows.append(retriever.fuse(lists, FusionContext(queries[at], own, Lines(texts), asked[at], vectors))[:2])
        return [(ids.tolist(), scores.tolist()) for ids, scores in rows]
    found = retriever.search(own, vectors, queries, asked)
    return [(found.row(at)[0].tolist(), found.row(at)[1].tolist()) for at in range(len(queries))]


def in_database(
    retriever: DatabaseRetriever, texts: list[str], vectors: Any, queries: list[str], asked: Any
) -> list[tuple[list[int], list[float]]]:
    """What a database finds in an index of its own, fed by batches of eight chunks."""
    if not texts:
        return [([], []) for _ in queries]
    parts = [slice(begin, begin + 8) for begin in range(0, len(texts), 8)]
    batches = (Batch(np.arange(len(texts))[at], texts[at], vectors[at]) for at in parts)
    with tempfile.TemporaryDirectory() as folder:
        place = IndexPlace("harness_contract", Path(folder))
        assert not retriever.is_built(place, len(texts))
        assert retriever.build(place, batches) > 0
        assert retriever.is_built(place, len(texts))
        assert not retriever.is_built(place, len(texts) + 1)
        with retriever.opened(place) as opened:
            found = retriever.nearest(opened, queries, asked)
        retriever.drop(place)
        retriever.drop(place)
        assert not retriever.is_built(place, len(texts))
    return [(found.row(at)[0].tolist(), found.row(at)[1].tolist()) for at in range(len(queries))]


LONG = Document("d", "x " * 900, tokens=TokenMap(Tokenizer("words").starts("x " * 900)))
HITS = st.lists(
    st.builds(
        lambda doc, at, size, score: Hit(
            Chunk(
                f"d{doc}",
                at * 20,
                at * 20 + size,
                LONG.text[at * 20 : at * 20 + size],
                tokens=LONG.token_map().count(at * 20, at * 20 + size),
                document=replace(LONG, id=f"d{doc}", metadata=METADATA[doc]),
                vector=VECTORS[(at + doc) % len(VECTORS)],
            ),
            score,
        ),
        st.integers(0, 2),
        st.integers(0, 30),
        st.integers(1, 60),
        st.floats(-2, 2) | st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=12,
    unique_by=lambda hit: (hit.chunk.doc, hit.chunk.start),
)
METADATA: list[dict[str, Any]] = [{}, {"date": "2026-01-20", "source_type": "official"}, {"authority": 0.9}]
VECTORS = [row.astype(np.float32) for row in np.random.default_rng(5).normal(size=(7, 8))]
VECTORS = [row / np.linalg.norm(row) for row in VECTORS]
QUERY = Query("q", "what is x and why?", metadata={"category": "c"})
SELECTOR_CASES: list[Selector] = [
    *(made_of(cls) for cls in SELECTORS),
    TopK(2),
    TopK(99),
    Threshold(-1),
    Dedup(0.5),
    Dedup(0.8, "vectors"),
    Diversify(1, 0.0),
    Diversify(None, 0.5, "vectors"),
    Normalize("z_score"),
    Normalize("rank"),
    Adaptive(0, 3, 0.1),
    Elbow(0.3, 1, 4, "max_k"),
    MMR(3, 0.3, 6),
    MMR(4, 0.0, None),
    MergeAdjacent(8),
    TokenBudget(12),
    TokenBudget(12, "stop"),
    TokenBudget(12, "cut"),
    ContextBudget(40, 0, 5, 5, "cut"),
]


@pytest.mark.parametrize("selector", SELECTOR_CASES, ids=repr)
@given(hits=HITS)
@settings(max_examples=80, deadline=None)
def test_selectors(selector: Any, hits: list[Hit]) -> None:
    """Kept hits are input hits, cut hits, or merged neighbours; the rest is dropped with a reason.

    The outcome is deterministic, and the input is not modified.
    """
    before = list(hits)
    outcome = selector.select(QUERY, hits)
    assert hits == before
    assert outcome == selector.select(QUERY, hits)
    _check(f"selector {selector.name()}", hits, outcome)
    assert all(drop.hit.chunk in [hit.chunk for hit in hits] and drop.reason for drop in outcome.dropped)
    assert all(math.isfinite(hit.score) for hit in outcome.kept)
    if not isinstance(selector, MergeAdjacent):
        assert len(outcome.kept) + len(outcome.dropped) == len(hits)
    for hit in outcome.kept:
        assert hit.chunk.text == LONG.text[hit.chunk.start : hit.chunk.end]
    if selector.scale("unit") == "unit" and all(0 <= hit.score <= 1 for hit in hits):
        assert all(0 <= hit.score <= 1 for hit in outcome.kept)


@pytest.mark.parametrize("selector", SELECTOR_CASES, ids=repr)
def test_selectors_on_no_hit_and_on_one(selector: Any) -> None:
    """No hits give no hits; a single hit with score 1 is kept."""
    assert selector.select(QUERY, []) == Outcome([], [])
    chunk = Chunk("d0", 0, 2, "x ", tokens=1, document=replace(LONG, id="d0"), vector=VECTORS[0])
    assert [hit.chunk for hit in selector.select(QUERY, [Hit(chunk, 1.0)]).kept] == [chunk]


@pytest.mark.parametrize("selector", SELECTOR_CASES, ids=repr)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_scores_that_are_not_finite_are_rejected(selector: Any) -> None:
    """NaN and infinity never lead to a selection."""
    chunks = [Chunk("d0", at, at + 2, "x ", tokens=1, document=LONG, vector=VECTORS[0]) for at in (0, 2, 4)]
    for score in (math.nan, math.inf):
        hits = [Hit(chunk, score if at == 1 else 0.9) for at, chunk in enumerate(chunks)]
        with pytest.raises(ConfigError, match=f"selector {selector.name()}: a score is not a number"):
            _check(f"selector {selector.name()}", hits, selector.select(QUERY, hits))


BUDGETS = [case for case in SELECTOR_CASES if isinstance(case, TokenBudget | ContextBudget)]


@pytest.mark.parametrize("selector", BUDGETS, ids=repr)
@given(hits=HITS)
@settings(max_examples=80, deadline=None)
def test_budgets_are_never_exceeded(selector: Any, hits: list[Hit]) -> None:
    """With every value of `overflow`."""
    limit = selector.tokens if isinstance(selector, TokenBudget) else selector.allocation.context
    assert sum(hit.chunk.tokens for hit in selector.select(QUERY, hits).kept) <= limit


@given(hits=HITS, k=st.integers(1, 14))
@settings(max_examples=200, deadline=None)
def test_mmr_with_relevance_one_is_top_k(hits: list[Hit], k: int) -> None:
    """On hits sorted best first."""
    ranking = best_hits_first(hits)
    assert MMR(k, 1.0, None).select(QUERY, ranking).kept == TopK(k).select(QUERY, ranking).kept


@pytest.mark.parametrize("step", [Dedup(0.5), Dedup(0.9), Dedup(0.7, "vectors"), Diversify(2, 0.2), MergeAdjacent()])
@given(hits=HITS)
@settings(max_examples=80, deadline=None)
def test_idempotent_steps(step: Selector, hits: list[Hit]) -> None:
    """Applying dedup, diversify or merge twice is the same as once."""
    once = step.select(QUERY, hits).kept
    assert step.select(QUERY, once) == Outcome(once, [])


@given(hits=HITS, min_k=st.integers(1, 6), more=st.integers(0, 6), drop=st.floats(0.01, 1))
@settings(max_examples=200, deadline=None)
def test_elbow_keeps_its_minimum(hits: list[Hit], min_k: int, more: int, drop: float) -> None:
    """At least `min_k` hits, or all if there are fewer, and at most `max_k`."""
    kept = Elbow(drop, min_k, min_k + more).select(QUERY, best_hits_first(hits)).kept
    assert min(min_k, len(hits)) <= len(kept) <= min_k + more
