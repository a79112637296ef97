"""The heuristic judges: examples by hand, agreement with people, known limits."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from judged_questions import case

from harness.core.records import Case, Chunk, Evidence, Query, Span
from harness.evaluation.stats.rater_agreement import Confusion, kappa
from harness.llm import Label, Task
from judges import HeuristicPrecision, HeuristicRecall
from judges.support import containment, numbers_kept, supported

CLAIM = "Kestrels hover over grassland and eat voles."


def evident(passages: list[Chunk], item: str = CLAIM, place: Span | None = None) -> Case:
    query = Query("q", "What do kestrels eat?", (Evidence((place or Span("gold", 0, len(item)),)),))
    return Case(query, (item,), tuple(passages))


def grade(item: str, passage: str) -> int:
    task = Task("", (passage,), item)
    judgment = supported([task], None)[task]
    assert isinstance(judgment, Label)
    return judgment.grade


def test_containment_by_hand() -> None:
    """Kestrels counts twice for its capital: 2 + hover, over, grassland, eat, voles = 7; three of these occur."""
    assert containment(CLAIM, "a kestrel hovering") == pytest.approx(3 / 7)
    assert containment(CLAIM, CLAIM) == 1.0
    assert containment("of the", "anything") == 0.0


def test_support() -> None:
    """The same words in another order and form are support; the same subject is not."""
    assert grade(CLAIM, "Over grassland, the hovering kestrel looks for voles to eat.") == 2
    assert grade(CLAIM, "Kestrels nest in church towers.") == 0


def test_a_missing_number_is_partial() -> None:
    """It does not count for recall."""
    assert grade("Kestrels weigh 200 grams.", "Kestrels weigh few grams.") == 1
    assert numbers_kept("12.5 kg in 1990", "in 1990 it was 12.5 kg")
    assert not numbers_kept("12.5 kg", "125 kg")


def test_negation_is_not_seen() -> None:
    """A known limit, stated in the docs: only the words count."""
    assert grade(CLAIM, "Kestrels do not hover over grassland, nor do they eat voles.") == 2


def test_overlapping_passages_are_relevant() -> None:
    """A passage that covers half of the evidence is relevant regardless of its words; others are judged by words."""
    place = Span("gold", 100, 200)
    over, beside = Chunk("gold", 150, 260, "x"), Chunk("gold", 190, 400, "y")
    judge = HeuristicPrecision()
    made = evident([over, beside], place=place)
    assert [task.texts for task in judge.tasks(made)] == [("y",)]
    verdict = judge.score(made, supported(judge.tasks(made), None))
    score = verdict.scores["heuristic_precision"]
    assert score is not None
    assert score.value == 0.5


def test_document_level_evidence() -> None:
    """All chunks of such a document are relevant, others are not."""
    query = Query("q", "?", (Evidence((Span("gold", 0, 10),), whole=True),))
    made = Case(query, (), (Chunk("gold", 3, 5, "a"), Chunk("other", 0, 2, "b")))
    judge = HeuristicPrecision()
    assert judge.tasks(made) == []
    score = judge.score(made, {}).scores["heuristic_precision"]
    assert score is not None
    assert score.value == 0.5


def test_without_evidence_the_reference_answer_is_used() -> None:
    """Without both there is no value, rather than 0."""
    judge = HeuristicPrecision(k=2)
    made = case("What do kestrels eat?", ["Kestrels eat voles.", "Foxes."], answer="Voles")
    score = judge.score(made, supported(judge.tasks(made), None)).scores["heuristic_precision"]
    assert score is not None
    assert score.value == 0.5
    assert judge.score(case("Why?", ["x"]), {}).scores["heuristic_precision"] is None
    assert HeuristicRecall().score(case("Why?", ["x"]), {}).scores["heuristic_recall"] is None


def test_recall_by_words() -> None:
    """Found in the second passage; 0 for an empty retrieval."""
    judge = HeuristicRecall()
    made = evident([Chunk("a", 0, 4, "Foxes"), Chunk("b", 0, 9, "Kestrels eat voles over grassland, hovering.")])
    score = judge.score(made, supported(judge.tasks(made), None)).scores["heuristic_recall"]
    assert score is not None
    assert score.value == 1.0
    empty = judge.score(evident([]), {})
    assert empty.scores["heuristic_recall"] == (0.0, 0.0, 0.0)
    assert empty.flags == ("empty_retrieval",)


def test_sentences_are_embedded_only_if_they_can_change_the_result() -> None:
    """Not if the words suffice, and not if even a cosine of 1 would not."""
    seen: list[str] = []

    def embed(texts: object) -> np.ndarray:
        seen.extend(texts)  # type: ignore[call-overload]
        return np.ones((len(seen), 1), np.float32)

    tasks = [Task("", (text,), CLAIM) for text in (CLAIM, "Nothing of the kind.", "A kestrel hovering. It rains.")]
    found = supported(tasks, embed)
    assert seen == ["A kestrel hovering.", "It rains.", CLAIM]
    assert [one.grade for one in found.values() if isinstance(one, Label)] == [2, 0, 2]


def wice(folder: Path, words: int) -> list[tuple[str, str, bool]]:
    """Claims, chunks of whole sentences, and whether a chunk contains a sentence that people labelled supporting."""
    pairs = []
    with gzip.open(folder / "claim_test.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            supporting = {number for chosen in record["supporting_sentences"] for number in chosen}
            chunk: list[int] = []
            size = 0
            for number, sentence in enumerate([*record["evidence"], None]):
                length = len(sentence.split()) if sentence is not None else words
                if chunk and size + length > words:
                    text = " ".join(record["evidence"][at] for at in chunk)
                    pairs.append((record["claim"], text, bool(supporting & set(chunk))))
                    chunk, size = [], 0
                chunk, size = [*chunk, number], size + length
    return pairs


@pytest.mark.parametrize(("words", "expected"), [(200, 0.53), (300, 0.59)])
def test_agreement_with_people(words: int, expected: float, shared: Callable[[str], Path]) -> None:
    """Kappa on the test claims of WiCE, by words alone, as stated in `judges.support`."""
    pairs = wice(shared("wice"), words)
    tasks = [Task("", (text,), claim) for claim, text, _ in pairs]
    found = supported(tasks, None)
    says = np.array([found[task].grade > 0 for task in tasks])  # type: ignore[union-attr]
    people = np.array([supports for _, _, supports in pairs])
    assert float(kappa(Confusion.of(people, says))) == pytest.approx(expected, abs=0.01)


def test_capitalized_words_and_numbers_count_twice() -> None:
    """Even if the same word also occurs in lower case."""
    assert containment("12 eggs", "eggs") == pytest.approx(1 / 3)
    assert containment("b12 eggs", "b12") == pytest.approx(2 / 3)
    assert containment("Rye rye bread", "bread") == containment("rye Rye bread", "bread") == pytest.approx(1 / 3)


def test_words_alone_need_a_containment_of_042() -> None:
    """Three of seven are enough, two of five are not."""
    assert grade("one two three four five six seven", "one two three") == 2
    assert grade("one two three four five", "one two") == 0
    words = [f"w{number}" for number in range(50)]
    assert [grade(" ".join(words), " ".join(words[:count])) for count in (20, 21)] == [0, 1]


@pytest.mark.parametrize(("cosine", "found"), [(0.6, 2), (0.5, 0), (-1.0, 0)])
def test_a_similar_sentence_decides(cosine: float, found: int) -> None:
    """A containment of 3/7 = 0.43 needs a cosine of 0.54: 0.43 + 0.6 * 0.54 = 0.75."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([[1.0] if text == CLAIM else [cosine if "hover" in text else -1.0] for text in texts])

    task = Task("", ("It rains. A kestrel hovering. It rains.",), CLAIM)
    message = f"words 0.43, closest sentence {cosine:.2f}" if cosine > 0 else "words 0.43"
    assert supported([task], embed) == {task: Label(found, message, by="heuristic")}


def test_blank_sentences_are_not_embedded() -> None:
    """White space after the last full stop."""
    seen: list[str] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        seen.extend(texts)
        return np.ones((len(texts), 1), np.float32)

    supported([Task("", ("A kestrel hovering. \n",), CLAIM)], embed)
    assert seen == ["A kestrel hovering.", CLAIM]


def test_sentences_are_embedded_only_with_the_setting() -> None:
    """Otherwise words alone decide."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), 1), np.float32)

    tasks = [Task("", ("A kestrel.",), CLAIM)]  # 2 of 7 words
    for kind in (HeuristicPrecision, HeuristicRecall):
        for sentences, expected in ((True, 2), (False, 0)):
            found = kind(sentences=sentences).decide(tasks, embed)
            assert [one.grade for one in found.values() if isinstance(one, Label)] == [expected]


def test_no_encoder_is_needed_if_words_decide() -> None:
    """If words decide all tasks, nothing is embedded."""

    def embed(texts: object) -> np.ndarray:
        raise AssertionError("embedded although words settle it")

    tasks = [Task("", (text,), CLAIM) for text in (CLAIM, "Nothing of the kind.")]
    assert [one.grade for one in supported(tasks, embed).values() if isinstance(one, Label)] == [2, 0]


@pytest.mark.parametrize(
    ("start", "end", "relevant"),
    [(150, 400, True), (151, 400, False), (190, 210, True), (191, 211, False), (0, 150, True), (300, 400, False)],
)
def test_half_of_the_shorter_makes_an_overlap(start: int, end: int, relevant: bool) -> None:
    """Of the span or of the passage; the same offsets in another document do not count."""
    place = Span("gold", 100, 200)
    judge = HeuristicPrecision()
    assert (judge.tasks(evident([Chunk("gold", start, end, "x")], place=place)) == []) == relevant
    assert judge.tasks(evident([Chunk("lead", start, end, "x")], place=place)) != []


def test_precision_is_divided_by_k() -> None:
    """One relevant of two passages with k=4: 1/4; with k=2 a third passage is ignored."""
    place = Span("gold", 100, 200)
    chunks = [Chunk("lead", 0, 1, "Foxes"), Chunk("gold", 100, 200, "x"), Chunk("lead", 1, 2, CLAIM)]
    for k, passages, value in ((4, chunks[:2], 0.25), (2, chunks, 0.5), (None, chunks, 2 / 3)):
        judge = HeuristicPrecision(k=k)
        made = evident(passages, place=place)
        verdict = judge.score(made, supported(judge.tasks(made), None))
        assert verdict.scores["heuristic_precision"] == (value, value, value)
        assert [one.rank for one in verdict.findings] == list(range(1, len(passages[:k]) + 1))
        assert verdict.findings[1].judgments == (Label(2, "overlaps evidence", by="exact"),)
        assert verdict.flags == ()


def test_a_passage_may_support_any_item() -> None:
    """The best label counts; without passages precision is 0, flagged."""
    query = Query("q", "?", (Evidence((Span("gold", 0, 9),)), Evidence((Span("gold", 9, 18),))))
    made = Case(query, ("Foxes dig dens.", CLAIM), (Chunk("lead", 0, 9, CLAIM),))
    judge = HeuristicPrecision()
    verdict = judge.score(made, supported(judge.tasks(made), None))
    assert verdict.findings[0].judgments == (Label(2, "words 1.00", by="heuristic"),)
    empty = judge.score(evident([]), {})
    assert empty.scores["heuristic_precision"] == (0.0, 0.0, 0.0)
    assert empty.flags == ("empty_retrieval",)


def test_a_passage_that_lacks_a_number_is_still_relevant() -> None:
    """Partial support counts for precision."""
    judge = HeuristicPrecision()
    made = evident([Chunk("a", 0, 1, "Kestrels weigh few grams.")], "Kestrels weigh 200 grams.")
    found = supported(judge.tasks(made), None)
    assert [one.grade for one in found.values() if isinstance(one, Label)] == [1]
    assert judge.score(made, found).scores["heuristic_precision"] == (1.0, 1.0, 1.0)


def test_recall_names_the_passage_that_supports_an_item_best() -> None:
    """The first of the best among the first k; if a number is missing, the item does not count."""
    texts = ["Foxes", "Kestrels weigh few grams", "Grams: 200. Kestrels weigh 200.", "Kestrels weigh 200 grams or so"]
    item = "Kestrels weigh 200 grams."
    made = evident([Chunk("a", at, at + 1, text) for at, text in enumerate(texts)], item)
    for k, value, message in ((1, 0.0, "passage 1: words 0.00"), (2, 0.0, "passage 2: "), (None, 1.0, "passage 3: ")):
        judge = HeuristicRecall(k=k)
        assert [task.texts[0] for task in judge.tasks(made)] == texts[:k]
        verdict = judge.score(made, supported(judge.tasks(made), None))
        (label,) = verdict.findings[0].judgments
        assert isinstance(label, Label)
        assert label.why.startswith(message)
        assert verdict.scores["heuristic_recall"] == (value, value, value)
        assert verdict.flags == ()


def test_items_that_occur_are_exact_matches() -> None:
    """They are not scored by words."""
    made = evident([Chunk("a", 0, 1, f"{CLAIM} So it is.")])
    judge = HeuristicRecall()
    assert judge.tasks(made) == []
    (label,) = judge.score(made, {}).findings[0].judgments
    assert label == Label(2, "occurs in passage 1", CLAIM, "exact")
    assert judge.tasks(evident([Chunk("gold", 0, 90, "x")])) == []  # covers its place
    (nothing,) = judge.score(evident([]), {}).findings[0].judgments
    assert nothing == Label(0, "nothing was retrieved", by="exact")
