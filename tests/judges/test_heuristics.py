"""Judges without a model: by hand, against people, and what they are known not to see."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from courtroom import case

from harness.llm import Label, Task
from harness.model import Case, Chunk, Evidence, Query, Span
from harness.stats.agreement import Confusion, kappa
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
    """The same in other order and forms is support; the same subject is not."""
    assert grade(CLAIM, "Over grassland, the hovering kestrel looks for voles to eat.") == 2
    assert grade(CLAIM, "Kestrels nest in church towers.") == 0


def test_a_missing_number_is_partial() -> None:
    """Recall does not count it."""
    assert grade("Kestrels weigh 200 grams.", "Kestrels weigh few grams.") == 1
    assert numbers_kept("12.5 kg in 1990", "in 1990 it was 12.5 kg")
    assert not numbers_kept("12.5 kg", "125 kg")


def test_negation_is_not_seen() -> None:
    """A known limit, told in the docs: words decide, whatever stands between them."""
    assert grade(CLAIM, "Kestrels do not hover over grassland, nor do they eat voles.") == 2


def test_places_decide_where_they_can() -> None:
    """A passage over half of the evidence is relevant whatever its words; one beside it is judged by words."""
    place = Span("gold", 100, 200)
    over, beside = Chunk("gold", 150, 260, "x"), Chunk("gold", 190, 400, "y")
    judge = HeuristicPrecision()
    made = evident([over, beside], place=place)
    assert [task.texts for task in judge.tasks(made)] == [("y",)]
    verdict = judge.score(made, supported(judge.tasks(made), None))
    score = verdict.scores["heuristic_precision"]
    assert score is not None
    assert score.value == 0.5


def test_documents_as_evidence() -> None:
    """Every chunk of such a document is relevant, no other."""
    query = Query("q", "?", (Evidence((Span("gold", 0, 10),), whole=True),))
    made = Case(query, (), (Chunk("gold", 3, 5, "a"), Chunk("other", 0, 2, "b")))
    judge = HeuristicPrecision()
    assert judge.tasks(made) == []
    score = judge.score(made, {}).scores["heuristic_precision"]
    assert score is not None
    assert score.value == 0.5


def test_without_evidence_the_answer_serves_and_without_both_nothing() -> None:
    """No value, rather than a 0."""
    judge = HeuristicPrecision(k=2)
    made = case("What do kestrels eat?", ["Kestrels eat voles.", "Foxes."], answer="Voles")
    score = judge.score(made, supported(judge.tasks(made), None)).scores["heuristic_precision"]
    assert score is not None
    assert score.value == 0.5
    assert judge.score(case("Why?", ["x"]), {}).scores["heuristic_precision"] is None
    assert HeuristicRecall().score(case("Why?", ["x"]), {}).scores["heuristic_recall"] is None


def test_recall_by_words() -> None:
    """Found in the second passage; an empty retrieval finds nothing."""
    judge = HeuristicRecall()
    made = evident([Chunk("a", 0, 4, "Foxes"), Chunk("b", 0, 9, "Kestrels eat voles over grassland, hovering.")])
    score = judge.score(made, supported(judge.tasks(made), None)).scores["heuristic_recall"]
    assert score is not None
    assert score.value == 1.0
    empty = judge.score(evident([]), {})
    assert empty.scores["heuristic_recall"] == (0.0, 0.0, 0.0)
    assert empty.flags == ("empty_retrieval",)


def test_sentences_are_embedded_only_where_they_can_turn_the_scale() -> None:
    """Neither what words settle nor what no cosine could save."""
    seen: list[str] = []

    def embed(texts: object) -> np.ndarray:
        seen.extend(texts)  # type: ignore[call-overload]
        return np.ones((len(seen), 1), np.float32)

    tasks = [Task("", (text,), CLAIM) for text in (CLAIM, "Nothing of the kind.", "A kestrel hovering. It rains.")]
    found = supported(tasks, embed)
    assert seen == ["A kestrel hovering.", "It rains.", CLAIM]
    assert [one.grade for one in found.values() if isinstance(one, Label)] == [2, 0, 2]


def wice(folder: Path, words: int) -> list[tuple[str, str, bool]]:
    """Claims with chunks of whole sentences, and whether a chunk holds a sentence that people call supporting."""
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
    """Kappa on the test claims of WiCE, by words alone, is what the module says."""
    pairs = wice(shared("wice"), words)
    tasks = [Task("", (text,), claim) for claim, text, _ in pairs]
    found = supported(tasks, None)
    says = np.array([found[task].grade > 0 for task in tasks])  # type: ignore[union-attr]
    people = np.array([supports for _, _, supports in pairs])
    assert float(kappa(Confusion.of(people, says))) == pytest.approx(expected, abs=0.01)
