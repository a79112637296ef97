"""Passages of other systems are located in the corpus, however their texts were changed, and never in a wrong place."""

import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Document, Returned, Span
from harness.data.corpus import HeldDocuments
from harness.data.location import Located, locate
from harness.data.skeleton import skeleton

BRINE = (
    "To make a brine, dissolve 60 g of salt in a litre of water. Keep the jar cool, at 18 °C or below, for ten days."
)
BREAD = "Knead the dough for ten minutes — until it is smooth — and let it rise in a bowl that is covered with a cloth."
DOCUMENTS = HeldDocuments([Document("brine", BRINE), Document("bread", BREAD), Document("again", f"Again. {BRINE}")])


def located(text: str, doc: str | None = None, start: int | None = None, end: int | None = None) -> Located:
    (found,) = locate([Returned(text, doc, start, end)], DOCUMENTS)
    return found


def test_the_text_as_it_is() -> None:
    """At all its places, without the white space around it; in one document if that is named and has it."""
    text = "dissolve 60 g of salt"
    assert located(f" {text}\n") == Located((Span("brine", 17, 38), Span("again", 24, 45)), "exact")
    assert located(text, "again") == Located((Span("again", 24, 45),), "exact")
    assert located(text, "bread") == located(text)
    assert located("salt", "brine").places == (Span("brine", 34, 38),)
    assert located("alt", "brine") == located("SSOLVE 60", "brine") == Located(())  # short, and inside words
    assert located(text, "no such document").places == located(text).places
    assert located("  ") == located("pickled walnuts") == Located(())


def test_offsets() -> None:
    """Count if they agree with the text; else the text is searched for."""
    assert located("", "brine", 17, 38) == Located((Span("brine", 17, 38),), "offsets")
    assert located("Dissolve 60g of salt", "brine", 17, 38) == Located((Span("brine", 17, 38),), "offsets")
    assert located("dissolve 60 g of salt", "brine", 19, 40) == Located((Span("brine", 17, 38),), "exact")
    assert located("", "brine", 17, 1000) == located("", "brine", 5, 5) == located("", "brine") == Located(())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Knead the dough\nfor  ten minutes", "Knead the dough for ten minutes"),
        ("KNEAD THE DOUGH", "Knead the dough"),
        ("**Knead** the `dough` for", "Knead the dough for"),
        ("ten minutes - until it is smooth-and", "ten minutes — until it is smooth — and"),
        ("let it rise in a bowl that is cov-\nered", "let it rise in a bowl that is covered"),
    ],
)
def test_changed_texts(text: str, expected: str) -> None:
    """White space, case, Markdown, dashes and hyphens do not count."""
    start = BREAD.index(expected)
    assert located(text) == Located((Span("bread", start, start + len(expected)),), "normalised")


def test_the_longest_run() -> None:
    """Of at least 48 letters, and half of the passage; copies of it count, too."""
    found = located(f"Recipes, page 3\n{BREAD[:70]} [...]")
    assert found.places == (Span("bread", 0, 70),)
    assert found.how == "aligned"
    assert found.share == len(skeleton(BREAD[:70]).letters) / len(
        skeleton(f"Recipes, page 3\n{BREAD[:70]} [...]").letters
    )
    assert [place.doc for place in located(f"x{BRINE}").places] == ["brine", "again"]
    assert located(f"Recipes {BREAD[:40]}") == Located(())
    assert located(BREAD[:80] + "z" * 90) == Located(())


def test_unicode_forms() -> None:
    """Composed or not, with ligatures or without, whatever the order of the marks; a span has all marks of its end."""
    text = "Crème brûlée: ﬁve yolks, ạ̇ and ½ l of cream, then caramelise the sugar slowly, et voilà"
    documents = HeldDocuments([Document("a", "x " + unicodedata.normalize("NFD", text) + " y")])
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        (found,) = locate([Returned(unicodedata.normalize(form, text))], documents)
        assert found.places == (Span("a", 2, 2 + len(unicodedata.normalize("NFD", text))),)


@given(st.text(), st.integers(0, 2**32))
def test_skeletons(text: str, seed: int) -> None:
    """Equal for canonically equal texts, whatever the white space; every letter has its character."""
    made = skeleton(text)
    assert len(made.letters) == len(made.offsets)
    spaced = "".join(one + random.Random(seed + at).choice(["", " ", "\n\t"]) for at, one in enumerate(text))
    for other in (spaced, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))):
        if not any(map(unicodedata.combining, text)) or other is not spaced:
            assert skeleton(other).letters == made.letters
    if made.letters:
        start, end = made.span(0, len(made.letters))
        assert skeleton(text[start:end]).letters == made.letters
        assert skeleton(text[:start]).letters == skeleton(text[end:]).letters == ""


CHANGES: dict[str, Callable[[random.Random, str], str]] = {
    "white space": lambda rng, text: rng.choice([" ", "\n", "\r\n\t"]).join(text.split()),
    "no white space": lambda rng, text: re.sub(r"\s+", "", text),
    "NFD": lambda rng, text: unicodedata.normalize("NFD", text),
    "NFKC": lambda rng, text: unicodedata.normalize("NFKC", text),
    "case": lambda rng, text: text.upper(),
    "dashes and quotes": lambda rng, text: text.replace('"', "“").replace("'", "’").replace("-", "–"),
    "hyphenated": lambda rng, text: re.sub(r"(\w{4})(\w{4})", r"\1-\n\2", text),
    "Markdown": lambda rng, text: "## " + re.sub(r"\b(\w{7,})\b", r"**\1**", text),
    "truncated": lambda rng, text: text[rng.randint(0, 30) : len(text) - rng.randint(0, 30)].strip() + "…",
    "a title before": lambda rng, text: f"Title: a document\n\n{text}",
    "joined": lambda rng, text: text + " … " + text[::-1][: len(text) // 2],
}


def corpora(shared: Callable[[str], Path]) -> Iterator[Document]:
    """Abstracts, and long documents of five kinds."""
    for name in ("beir-scifact", "beir-nfcorpus"):
        with (shared(name) / "corpus.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                yield Document(f"{name}/{record['_id']}", record["text"])
    for path in sorted(shared("chroma-chunking").rglob("*.md")):
        yield Document(path.name, path.read_text(encoding="utf-8"))


def test_public_corpora(shared: Callable[[str], Path]) -> None:
    """6,600 passages: the place that each was cut from is always found, with at least half of the passage."""
    documents = HeldDocuments([doc for doc in corpora(shared) if len(doc.text) > 300])
    rng, asked, cut = random.Random(7), [], []
    for change in CHANGES.values():
        for _ in range(600):
            doc = documents[rng.randrange(len(documents))]
            length = min(len(doc.text), rng.randint(150, 1200))
            start = rng.randint(0, len(doc.text) - length)
            cut.append(Span(doc.id, start, start + length))
            asked.append(Returned(change(rng, doc.text[start : start + length])))
    found = locate(asked, documents)
    for (doc, start, end), one in zip(cut, found, strict=True):
        shared_ends = [min(end, place.end) - max(start, place.start) for place in one.places if place.doc == doc]
        assert not one.places or 2 * max(shared_ends) >= end - start
    for number, name in enumerate(CHANGES):
        part = found[600 * number : 600 * (number + 1)]
        assert sum(bool(one.places) for one in part) >= 597, name
