"""What every built-in of a role must hold, whatever else it does."""

import itertools
import json
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.augmenters import BUILTINS as AUGMENTERS
from harness.catalog import BUILTINS, component, describe, to_spec
from harness.chunkers import BUILTINS as CHUNKERS
from harness.chunkers import Fixed, Paragraph, Recursive, Sentence
from harness.component import Chunker, Component, identity
from harness.component import settings as settings_of
from harness.embedders import BUILTINS as EMBEDDERS
from harness.embedders import Api
from harness.llm import Asking
from harness.model import Chunk, Document, Hit, Query
from harness.retrievers import BUILTINS as RETRIEVERS
from harness.selectors import BUILTINS as SELECTORS
from harness.selectors import Dedup, Threshold, TokenBudget, TopK
from harness.tokens import Tokenizer

ALL = [cls for known in BUILTINS.values() for cls in known.values()]
WORDS = Tokenizer("words")


def made_of(cls: type[Component]) -> Component:
    """A component with its defaults; what asks a model has none for the model."""
    return cls(model="some-model") if issubclass(cls, Asking) else cls()


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
    """Frozen, defaults for every setting but the model, a first line that says what it does, JSON there and back."""
    made = made_of(cls)
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(made)[0].name if fields(made) else "x", 1)  # type: ignore[arg-type]
    assert (cls.__doc__ or "").strip()
    json.dumps(identity(made))
    assert component(cls.role, to_spec(made), where="x", beside=Path()) == made
    assert hash(made) == hash(made_of(cls))


@pytest.mark.parametrize("cls", ALL)
def test_runtime_settings_stay_out_of_the_identity(cls: type[Component]) -> None:
    """And all others are in it."""
    for field in fields(cls):  # type: ignore[arg-type]
        assert (field.name in settings_of(made_of(cls))) != bool(field.metadata.get("runtime"))


def test_identities_are_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed default or version re-addresses what is stored, so it must be meant; results changed: raise it."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    golden = json.loads((Path(__file__).parent / "identities.json").read_text())
    assert {f"{cls.role}.{cls.name()}": identity(made_of(cls)) for cls in ALL} == golden


@pytest.mark.parametrize("role", BUILTINS)
def test_descriptions(role: str) -> None:
    """Every built-in is described in one line that ends as a sentence."""
    for _, summary, _ in describe(role):
        assert summary.endswith(".")


def document(text: str, tokenizer: Tokenizer = WORDS) -> Document:
    return Document("d", text, "Title", tokens=tokenizer.map(text))


CHUNKER_CASES: list[Chunker] = [
    *(cls() for cls in CHUNKERS),
    Fixed(7, 3),
    Fixed(5, 4, "characters"),
    Sentence(6, 3),
    Paragraph(5),
    Recursive(6, 2),
    Recursive(9, 0, ("\n", " "), "characters"),
]


@pytest.mark.parametrize("chunker", CHUNKER_CASES, ids=repr)
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:12]))
def test_chunkers_on_awkward_texts(chunker: Chunker, text: str) -> None:
    """Empty, blank, one word, no boundary at all, CRLF, NUL."""
    check_spans(chunker, text)


@pytest.mark.parametrize("chunker", CHUNKER_CASES, ids=repr)
@given(text=st.text(st.sampled_from("ab é.\n\r\t #你🧑\u200d🍳!|-"), max_size=120))
@settings(max_examples=60, deadline=None)
def test_chunkers_on_any_text(chunker: Chunker, text: str) -> None:
    """Spans lie in range, cover every character that is not blank, are in order, and none lies inside the next or
    last.
    """
    check_spans(chunker, text)


@pytest.mark.parametrize("chunker", CHUNKER_CASES, ids=repr)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=40, deadline=None)
def test_chunkers_on_any_unicode(chunker: Chunker, text: str) -> None:
    """The whole of Unicode, with a byte-level tokenizer."""
    check_spans(chunker, text, Tokenizer("o200k_base"))


def check_spans(chunker: Chunker, text: str, tokenizer: Tokenizer = WORDS) -> None:
    doc = document(text, tokenizer)
    spans = [span for span in chunker.split(doc) if text[span[0] : span[1]].strip()]
    assert spans == [span for span in chunker.split(doc) if text[span[0] : span[1]].strip()]
    covered: set[int] = set()
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        covered |= set(range(start, end))
    assert all(at in covered for at, sign in enumerate(text) if not sign.isspace())
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    for (start, end), (later, last) in itertools.pairwise(spans):
        assert not (start >= later and end <= last)
        assert not (later >= start and last <= end)
    size = getattr(chunker, "size", None)
    if size is not None and getattr(chunker, "unit", "tokens") == "tokens":
        tokens = doc.token_map()
        for start, end in spans:
            # The tokens of one character cannot be parted: it alone may exceed the size.
            assert tokens.count(start, end) <= size or tokens.count(start, end - 1) == 0


@pytest.mark.parametrize("cls", [cls for cls in AUGMENTERS if not issubclass(cls, Asking)])
def test_augmenters_give_a_context_per_span(cls: Any) -> None:
    """In order, text, the same each time, whatever the text."""
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


@pytest.mark.parametrize("cls", RETRIEVERS)
def test_retrievers(cls: Any) -> None:
    """At most `depth` distinct chunks a query, best first, ties in chunk order, the same each time; also of nothing."""
    texts = [f"chunk {n % 7} about {WORDS_OF_TOPIC[n % 5]}" for n in range(30)]
    queries = ["about salt", "", "nothing known", "chunk 3 about rye"]
    for corpus in (texts, texts[:1], []):
        rows = ranked(cls(depth=6), corpus, queries)
        assert rows == ranked(cls(depth=6), corpus, queries)
        for ids, scores in rows:
            assert len(ids) == len(set(ids)) <= min(6, len(corpus))
            assert all(
                a > b or (a == b and i < j) for a, b, i, j in zip(scores, scores[1:], ids, ids[1:], strict=False)
            )


WORDS_OF_TOPIC = ["salt", "rye", "oven steam", "salt and rye", "butter"]


def ranked(retriever: Any, texts: list[str], queries: list[str]) -> list[tuple[list[int], list[float]]]:
    from harness.embedders import Hashing

    if retriever.parts:
        parts = [ranked(part, texts, queries) for part in retriever.parts]
        rows = [[(np.array(row[0], np.int64), np.array(row[1])) for row in query] for query in zip(*parts, strict=True)]
        return [(ids.tolist(), scores.tolist()) for ids, scores in map(retriever.fuse, rows)]
    vectors = Hashing(64).embed(texts).vectors if texts else np.empty((0, 64), np.float32)
    found = retriever.search(retriever.index(texts), vectors, queries, Hashing(64).embed(queries).vectors)
    return [(found.row(at)[0].tolist(), found.row(at)[1].tolist()) for at in range(len(queries))]


HITS = st.lists(
    st.builds(
        lambda at, text, score: Hit(
            Chunk(
                "d", at * 50, at * 50 + len(text), text, tokens=len(text), token_map=Tokenizer("words").map("x " * 900)
            ),
            score,
        ),
        st.integers(0, 30),
        st.text("ab cde", min_size=1, max_size=12),
        st.floats(-2, 2),
    ),
    max_size=12,
    unique_by=lambda hit: hit.chunk.start,
)
SELECTOR_CASES = [
    *(cls() for cls in SELECTORS),
    TopK(2),
    Threshold(-1),
    Dedup(0.5),
    TokenBudget(12),
    TokenBudget(12, "stop"),
]


@pytest.mark.parametrize("selector", SELECTOR_CASES, ids=repr)
@given(hits=HITS)
@settings(max_examples=80, deadline=None)
def test_selectors(selector: Any, hits: list[Hit]) -> None:
    """Every hit is kept or dropped with a reason, in order, the same each time, and the input is left as it was."""
    before = list(hits)
    outcome = selector.select(Query("q", "?"), hits)
    assert hits == before
    assert outcome == selector.select(Query("q", "?"), hits)
    assert len(outcome.kept) + len(outcome.dropped) == len(hits)
    positions = [hits.index(hit) for hit in outcome.kept]
    assert positions == sorted(positions)
    assert all(drop.hit in hits and drop.reason for drop in outcome.dropped)
