"""Chunk ensembling computed by hand: parents, the four parts of a score, merging, replacement."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Experiment, Trial, run
from harness.components.augmenters import Heading
from harness.components.chunkers import Scales
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25, Ensemble
from harness.components.retrievers.ensemble import _View
from harness.components.retrievers.intent import expected, has_form
from harness.components.roles import FusionContext
from harness.components.selectors import Threshold
from harness.core.records import Document, TokenMap
from harness.core.tokenizer import Tokenizer
from harness.running.session import Session

WORDS = Tokenizer("words")


@dataclass
class Tiled:
    """Documents cut at given spans and scales, as a corpus sorted by document, start and end."""

    documents: list[str]
    spans: list[tuple[int, int, int, int]]
    doc: Any = field(init=False)

    def __post_init__(self) -> None:
        self.spans = sorted(self.spans)
        self.doc, self.start, self.end, self.scale = np.array(self.spans, np.int64).T
        self.texts = [self.documents[doc][start:end] for doc, start, end, _ in self.spans]
        self.tokens = np.array([WORDS.count(text) for text in self.texts])

    def count(self, doc: int, start: int, end: int) -> int:
        return WORDS.count(self.documents[doc][start:end])

    def blank(self, doc: int, start: int, end: int) -> bool:
        return not self.documents[doc][start:end].strip()

    def number(self, text: str, scale: int = 0) -> int:
        return next(at for at, t in enumerate(self.texts) if t == text and self.scale[at] == scale)


TEXT = "Rye needs steam. The oven holds heat. Cats sleep all day."
PARTS = [(0, 0, 16, 0), (0, 17, 37, 0), (0, 38, 57, 0), (0, 0, 37, 1), (0, 38, 57, 1)]
CORPUS = Tiled([TEXT], PARTS)


def view(query: str, corpus: Any = CORPUS, vectors: Any = None) -> _View:
    return _View.of(FusionContext(query, Ensemble().index(corpus.texts), corpus, np.array([1, 0], np.float32), vectors))


def test_parents() -> None:
    """The first two sentences share a parent, the last has its own; the coarsest chunks have none."""
    seen = view("rye")
    rye, oven, cats = (
        CORPUS.number(text) for text in ("Rye needs steam.", "The oven holds heat.", "Cats sleep all day.")
    )
    whole = CORPUS.number(TEXT[:37], 1)
    assert [seen.parent(at) for at in (rye, oven, cats)] == [whole, whole, CORPUS.number("Cats sleep all day.", 1)]
    assert seen.parent(whole) is None


def test_completeness() -> None:
    """The parent has rye and oven, each sentence has one of them; both are in 2 of 5 chunks, so their idf is equal."""
    seen = view("rye oven unicorn")
    assert seen.completeness(CORPUS.number("Rye needs steam.")) == pytest.approx(0.5)
    assert seen.completeness(CORPUS.number(TEXT[:37], 1)) == 1
    # The parent of the last one has none of the words, so its completeness is 1.
    assert seen.completeness(CORPUS.number("Cats sleep all day.")) == 1


def test_completeness_weighs_by_idf() -> None:
    """`steam` is in 2 of 5 chunks: ln(1 + 3.5 / 2.5). `day`, with the stem `dai`, is in another parent."""
    seen = view("steam heat day")
    idf = np.log1p((5 - 2 + 0.5) / (2 + 0.5))
    assert seen.idf == pytest.approx({"steam": idf, "heat": idf, "dai": idf})
    assert seen.completeness(CORPUS.number("Rye needs steam.")) == pytest.approx(0.5)


def test_intent() -> None:
    """The best sentence has one of two stems of equal weight; halved if a duration is expected and missing."""
    parent = CORPUS.number(TEXT[:37], 1)
    assert view("rye oven").intent(parent) == pytest.approx(0.5)
    assert view("how long rye oven").intent(parent) < view("rye oven").intent(parent) / 1.9
    timed = Tiled(["Bake rye for 40 minutes. Cool rye."], [(0, 0, 34, 0)])
    seen = view("How long to bake rye?", timed)
    assert seen.form == "duration"
    total = sum(seen.idf.values())
    assert seen.intent(0) == pytest.approx((seen.idf["bake"] + seen.idf["rye"]) / total)


@pytest.mark.parametrize(
    ("query", "form", "yes", "no"),
    [
        ("How long does it rest?", "duration", "Rest it for 2 hours.", "Rest it well."),
        ("How many eggs?", "number", "Take three eggs.", "Take some eggs."),
        ("When was it built?", "time", "It was built in 1923.", "It was built of stone."),
        ("Who taught the class?", "person", "The class was taught by Seo Min-ji.", "The class was taught well."),
        ("Where is the mill?", "place", "The mill stands in Skelbeck.", "The mill stands still."),
        ("Why does it crack?", "reason", "It cracks because it is dry.", "It cracks."),
        ("How do I fold it?", "way", "1. Fold it in half.", "Folded dough."),
        ("What is kimchi?", "definition", "Kimchi is a dish of leaves.", "Kimchi tastes sour."),
    ],
)
def test_forms_of_answers(query: str, form: str, yes: str, no: str) -> None:
    """The form follows from the words of the question; a query without a question word expects none."""
    assert expected(query) == form
    assert has_form(yes, form)
    assert not has_form(no, form)
    assert expected("sourdough starter") is None


def fused(retriever: Ensemble, query: str, lists: Any, vectors: Any, corpus: Any = CORPUS) -> list[tuple[str, float]]:
    searched = FusionContext(query, retriever.index(corpus.texts), corpus, np.array([1, 0], np.float32), vectors)
    rows = [(np.array(ids, np.int64), np.array(scores, float)) for ids, scores in lists]
    ids, scores, reach = retriever.fuse(rows, searched)  # type: ignore[misc]
    shown = []
    for at, score, end in zip(ids.tolist(), scores.tolist(), reach.tolist(), strict=True):
        doc, start = corpus.doc[at], corpus.start[at]
        shown.append((corpus.documents[doc][start : end or corpus.end[at]], score))
    return shown


VECTORS = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6], [0, 1]], np.float32)


def test_a_score_by_hand() -> None:
    """Ranks 1 and 2 of dense, 1 of BM25, c = 1: reciprocal ranks 1/2 + 1/2 and 1/3, scaled to 1 and 0.

    The cosines of the two are 1 and 0.6, scaled to 1 and 0. With four equal weights, and completeness and intent of
    the first 0.5 and 1 and of the second 1 and 0: (1 + 1 + 0.5 + 1) / 4 and (0 + 0 + 1 + 0) / 4.
    """
    retriever = Ensemble(fused=1, semantic=1, completeness=1, intent=1, complete=0, merge_tokens=0, c=1)
    rye, cats = CORPUS.number("Rye needs steam."), CORPUS.number("Cats sleep all day.")
    vectors = np.zeros((5, 2), np.float32)
    vectors[rye], vectors[cats] = (1, 0), (0.6, 0.8)
    found = fused(retriever, "rye", [([rye, cats], [1, 0.6]), ([rye], [3.0])], vectors)
    # The parent contains rye, too, and the chunk has all of it: the completeness is 1.
    assert found == [("Rye needs steam.", pytest.approx(1.0)), ("Cats sleep all day.", pytest.approx(0.25))]


def test_both_lists_count() -> None:
    """A chunk found by only one of the two is a candidate; the ensemble of the source ignored one list."""
    retriever = Ensemble(complete=0, merge_tokens=0)
    dense, lexical = CORPUS.number("Rye needs steam."), CORPUS.number("Cats sleep all day.")
    found = fused(retriever, "anything", [([dense], [0.9]), ([lexical], [4.0])], VECTORS)
    assert {text for text, _ in found} == {"Rye needs steam.", "Cats sleep all day."}


def test_neighbours_merge() -> None:
    """Two adjacent sentences of one scale with 9 tokens together; they do not merge if the limit is 8."""
    rye, oven = CORPUS.number("Rye needs steam."), CORPUS.number("The oven holds heat.")
    lists = [([rye, oven], [0.9, 0.5]), ([], [])]
    assert [text for text, _ in fused(Ensemble(complete=0, merge_tokens=9), "x", lists, VECTORS)] == [TEXT[:37]]
    assert len(fused(Ensemble(complete=0, merge_tokens=8), "x", lists, VECTORS)) == 2
    assert len(fused(Ensemble(complete=0, merge_tokens=9, merge_top=0), "x", lists, VECTORS)) == 2


def test_a_chunk_before_the_best_one_is_merged_too() -> None:
    """The passage then begins with the neighbour."""
    rye, oven = CORPUS.number("Rye needs steam."), CORPUS.number("The oven holds heat.")
    lists = [([oven, rye], [0.9, 0.5]), ([], [])]
    assert [text for text, _ in fused(Ensemble(complete=0, merge_tokens=9), "oven", lists, VECTORS)] == [TEXT[:37]]


def test_a_parent_replaces_an_incomplete_chunk() -> None:
    """A completeness of one half is below 0.6 and not below 0.5; one parent replaces both chunks."""
    rye, oven = CORPUS.number("Rye needs steam."), CORPUS.number("The oven holds heat.")
    lists = [([rye, oven], [0.9, 0.5]), ([], [])]
    found = fused(Ensemble(complete=0.6, merge_tokens=0), "rye oven", lists, VECTORS)
    assert [text for text, _ in found] == [TEXT[:37]]
    assert len(fused(Ensemble(complete=0.5, merge_tokens=0), "rye oven", lists, VECTORS)) == 2


def test_no_text_is_returned_twice() -> None:
    """A parent ranked after its child and a child ranked after its parent are skipped."""
    rye, whole = CORPUS.number("Rye needs steam."), CORPUS.number(TEXT[:37], 1)
    for first, second in ((rye, whole), (whole, rye)):
        found = fused(Ensemble(1, complete=0, merge_tokens=0), "x", [([first, second], [0.9, 0.5]), ([], [])], VECTORS)
        assert len(found) == 1


@given(
    sizes=st.sampled_from([(3, 9), (4, 8, 20), (6,)]),
    text=st.text(st.sampled_from("ab .\n"), min_size=1, max_size=150),
    seed=st.integers(0, 999),
    merge=st.integers(0, 15),
    complete=st.sampled_from([0.0, 0.5, 1.0]),
)
@settings(max_examples=150, deadline=None)
def test_invariants_of_passages(sizes: tuple[int, ...], text: str, seed: int, merge: int, complete: float) -> None:
    """Each begins with a distinct chunk; merged passages are within the limit; large overlaps are gone."""
    doc = Document("d", text, tokens=TokenMap(WORDS.starts(text)))
    spans: dict[tuple[int, int], int] = {}
    for scale, tiling in enumerate(Scales(sizes).tilings(doc)):
        for span in tiling:
            spans.setdefault(span, scale)
    if not spans:
        return
    corpus = Tiled([text], [(0, *span, scale) for span, scale in spans.items()])
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(len(corpus.texts), 2)).astype(np.float32)
    ids = rng.permutation(len(corpus.texts))
    retriever = Ensemble(50, complete=complete, merge_tokens=merge, bm25=BM25())
    searched = FusionContext("a b", retriever.index(corpus.texts), corpus, np.array([1, 0], np.float32), vectors)
    lists = [(ids, np.sort(rng.normal(size=len(ids)))[::-1]), (ids[:3], np.array([3.0, 2.0, 1.0])[: len(ids)])]
    first, scores, reach = retriever.fuse(lists, searched)  # type: ignore[misc]
    assert len(set(first.tolist())) == len(first)
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)
    passages = [(int(corpus.start[at]), int(end or corpus.end[at])) for at, end in zip(first, reach, strict=True)]
    for (start, end), far in zip(passages, reach, strict=True):
        assert not far or corpus.count(0, start, end) <= merge
    for at, (start, end) in enumerate(passages):
        for other, last in passages[:at]:
            shared = min(end, last) - max(start, other)
            assert 2 * shared <= min(end - start, last - other) or any(reach)


def test_a_merged_passage_in_a_launch(make_data: Any, tmp_path: Path) -> None:
    """Shown and counted with its contexts; if a step drops it, loss attribution names that step."""
    text = "Rye dough needs hot steam early. Rye dough needs dry heat later. Cats sleep. Dogs bark at night."
    quote = "steam early. Rye dough needs dry heat"
    start = text.index(quote)
    evidence = [{"doc": "d", "start": start, "end": start + len(quote), "quote": quote}]
    query = {"id": "q", "text": "When does rye dough need steam and heat?", "evidence": evidence}
    make_data([{"id": "d", "title": "Rye", "text": text}], [query], name="rye")
    base = Trial(
        "rye",
        Scales((7, 30), "sentence"),
        Ensemble(5, complete=0, merge_tokens=14),
        tokenizer="words",
        embedder=Hashing(64),
        metrics=("recall@5",),
        augmenter=Heading(),
    )
    made = Experiment("merged", base, {"selector": [(), (Threshold(2.0),)]}, base_dir=tmp_path)
    kept, dropped = run(made, store=tmp_path / "s", log=False).results
    assert (kept.mean("recall@5"), dropped.mean("recall@5")) == (1, 0)
    assert (kept.evidence_outcomes, dropped.evidence_outcomes) == ([["found"]], [["dropped:threshold"]])
    session = Session(made, tmp_path / "s")
    (selection,) = session.outputs(session.trials[0]).selections
    merged = next(pick for pick in selection.kept if text[pick.start : pick.end].startswith("Rye dough needs hot"))
    assert text[merged.start : merged.end] == "Rye dough needs hot steam early. Rye dough needs dry heat later."
    assert (merged.tokens, merged.context_tokens) == (14, 1)
