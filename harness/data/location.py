"""Where the passages that another system returns are in the corpus, though it may have changed their texts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from harness.core.records import Document, Returned, Span
from harness.data.corpus import Documents
from harness.data.many_texts import ManyTexts
from harness.data.quotes import inside_word
from harness.data.skeleton import Skeleton, skeleton

How = Literal["offsets", "exact", "normalised", "aligned"]
"""How a passage was located, the most certain first."""

FORMAT = 1
"""Increased if passages are located differently, which invalidates what is stored."""

SHORT = 20
"""Characters of a text from which it may begin or end inside a word, as texts do that were cut by their length."""

SHORTEST_RUN = 48
"""Letters of a skeleton that an aligned passage shares with the corpus at least."""

_SEED = 24
"""Letters of a run that are searched for before it is compared letter by letter."""

_RUNS = 1000
"""Runs of a passage that are compared: one that repeats itself has a great many."""


class Located(NamedTuple):
    """The places of a passage, in corpus order: all of them have the same text. Empty if it is in none.

    `share` is the fraction of its letters that are there; less than 1 only for an aligned passage.
    """

    places: tuple[Span, ...]
    how: How | None = None
    share: float = 1.0


def locate(passages: Sequence[Returned], documents: Documents) -> list[Located]:
    """Find each passage in the corpus.

    1. Offsets count if the document has them, and their text is that of the passage if it has one.
    2. Else the text is searched for as it is, without the white space around it, in the document that is named;
    3. then its skeleton in the skeletons of documents, which ignores white space, Unicode form, case, hyphenation and
       Markdown;
    4. then the longest run that it shares with a document, if that has at least half of the letters of its skeleton
       and at least `SHORTEST_RUN`.

    A passage is at all places that are found in the first of these steps that finds any; what is not in the document
    that is named is searched for in all. A text with fewer than `SHORT` characters must be whole words. The corpus is
    read once for step 2 and once for steps 3 and 4, if any passage needs them, and only where documents are named if
    all are.
    """
    found = [_by_offsets(passage, documents) for passage in passages]
    asked = {passage: None for passage, one in zip(passages, found, strict=True) if not one.places}
    known = _by_text([passage for passage in asked if passage.text.strip()], documents)
    # What is not where the system says may be elsewhere: under another id, for instance.
    elsewhere = {passage: Returned(passage.text) for passage in asked if passage.text.strip() and passage not in known}
    anywhere = _by_text(list(dict.fromkeys(one for passage, one in elsewhere.items() if passage.doc)), documents)
    known |= {passage: anywhere[one] for passage, one in elsewhere.items() if one in anywhere}
    return [one if one.places else known.get(passage, one) for passage, one in zip(passages, found, strict=True)]


def _by_text(passages: Sequence[Returned], documents: Documents) -> dict[Returned, Located]:
    """The places of texts, for those that have any."""
    known: dict[Returned, Located] = {}
    for search in (_exact, _by_skeleton):
        left = [passage for passage in passages if passage not in known]
        known |= search(left, documents) if left else {}
    return known


def _by_offsets(passage: Returned, documents: Documents) -> Located:
    doc, start, end = passage.doc, passage.start, passage.end
    if doc is None or start is None or end is None or doc not in documents.number:
        return Located(())
    text = documents.text(documents.number[doc])
    if not 0 <= start < end <= len(text):
        return Located(())
    same = not passage.text.strip() or skeleton(passage.text).letters == skeleton(text[start:end]).letters
    return Located((Span(doc, start, end),) if same else (), "offsets" if same else None)


def _exact(passages: Sequence[Returned], documents: Documents) -> dict[Returned, Located]:
    """The places of texts as they are."""
    wanted = _Patterns((passage, passage.text.strip()) for passage in passages)
    places: dict[Returned, list[Span]] = defaultdict(list)
    for doc in _searched(passages, documents):
        for passage, start, end in wanted.matches(doc.text, doc.id, documents):
            if _may_be(passage, doc.text, start, end):
                places[passage].append(Span(doc.id, start, end))
    return {passage: Located(tuple(spans), "exact") for passage, spans in places.items()}


def _by_skeleton(passages: Sequence[Returned], documents: Documents) -> dict[Returned, Located]:
    """The places of skeletons, or of the longest runs."""
    letters = {passage: skeleton(passage.text).letters for passage in passages}
    entire = _Patterns(letters.items())
    seeds = _Patterns((passage, seed) for passage, text in letters.items() for seed in _seeds(text))
    places: dict[Returned, list[Span]] = defaultdict(list)
    runs: dict[Returned, _LongestRuns] = defaultdict(_LongestRuns)
    for doc in _searched(passages, documents):
        made = skeleton(doc.text)
        for passage, start, end in entire.matches(made.letters, doc.id, documents):
            span = made.span(start, end)
            if _may_be(passage, doc.text, *span):
                places[passage].append(Span(doc.id, *span))
        for passage, start, end in seeds.matches(made.letters, doc.id, documents):
            if passage not in places:
                runs[passage].extend(letters[passage], made, doc.id, start, end)
    found = {passage: Located(tuple(spans), "normalised") for passage, spans in places.items()}
    for passage, longest in runs.items():
        if passage not in found and longest.length >= _least(letters[passage]):
            share = longest.length / len(letters[passage])
            found[passage] = Located(tuple(dict.fromkeys(longest.spans)), "aligned", share)
    return found


def _may_be(passage: Returned, text: str, start: int, end: int) -> bool:
    """Whether the place of a text may be that of a passage: a short one is not part of a word."""
    return len(passage.text) >= SHORT or not (inside_word(text, start) or inside_word(text, end))


def _least(letters: str) -> int:
    """How long a run must be to locate a passage of so many letters."""
    return max(SHORTEST_RUN, -(-len(letters) // 2))


def _seeds(letters: str) -> Iterator[str]:
    """Pieces of a skeleton so close together that every run that is long enough has one of them."""
    last = len(letters) - _SEED if len(letters) >= SHORTEST_RUN else -1
    for start in range(0, last + 1, _least(letters) - _SEED + 1):
        yield letters[start : start + _SEED]


def _searched(passages: Sequence[Returned], documents: Documents) -> Iterable[Document]:
    """The documents that any of the passages may be in, in corpus order."""
    named = [documents.number.get(passage.doc) if passage.doc is not None else None for passage in passages]
    if None in named:
        return documents
    return (documents[number] for number in sorted({number for number in named if number is not None}))


class _Patterns:
    """Texts of passages, which are searched for all at once."""

    def __init__(self, texts: Iterable[tuple[Returned, str]]) -> None:
        self._passages: Mapping[str, list[Returned]] = defaultdict(list)
        for passage, text in texts:
            if text:
                self._passages[text].append(passage)
        self._texts = list(self._passages)
        self._search = ManyTexts(self._texts)

    def matches(self, text: str, doc: str, documents: Documents) -> Iterator[tuple[Returned, int, int]]:
        """Where the texts of passages that may be in document `doc` are in a text."""
        for number, start, end in self._search.places(text):
            for passage in self._passages[self._texts[number]]:
                if passage.doc is None or passage.doc == doc or passage.doc not in documents.number:
                    yield passage, start, end


class _LongestRuns:
    """The places of the longest runs of letters that a passage shares with documents."""

    def __init__(self) -> None:
        self.length = 0
        self.spans: list[Span] = []
        self._compared = 0

    def extend(self, letters: str, document: Skeleton, doc: str, start: int, end: int) -> None:
        """Compare the letters around a seed, which is in the document from `start` to `end`."""
        seed = document.letters[start:end]
        at = letters.find(seed)
        while at >= 0 and self._compared < _RUNS:
            self._compared += 1
            before = _common_end(letters[:at], document.letters[max(0, start - at) : start])
            after = _common_start(letters[at + len(seed) :], document.letters[end : end + len(letters)])
            length = before + len(seed) + after
            if length > self.length:
                self.length, self.spans = length, []
            if length == self.length:
                self.spans.append(Span(doc, *document.span(start - before, end + after)))
            at = letters.find(seed, at + 1)


def _common_start(one: str, other: str) -> int:
    """The number of characters with which both texts begin."""
    lo, hi = 0, min(len(one), len(other))
    while lo < hi:
        middle = (lo + hi + 1) // 2
        lo, hi = (middle, hi) if one[lo:middle] == other[lo:middle] else (lo, middle - 1)
    return lo


def _common_end(one: str, other: str) -> int:
    """The number of characters with which both texts end."""
    return _common_start(one[::-1], other[::-1])
