"""Generating a query set: draw texts, have questions written, check and filter them, and mark them as synthetic."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.components.llm_roles import prompt_digest
from harness.components.text_analysis import Analyzer
from harness.core.errors import DataError
from harness.core.records import Chunk, Document
from harness.core.sequences import Made
from harness.data.checks.near_duplicates import near_duplicate_queries
from harness.data.passage_search import PassageSearch, snippets
from harness.data.quotes import occurrences
from harness.data.synthesis.prompts import BATCH, SEVERAL, SINGLE, UNANSWERABLE, AnswerChecker, QueryWriter
from harness.llm import BatchRunner, Caller, Completion, Estimate, Failure, Label, Task, estimate, missing, stored

ROUNDS = 3
"""Maximum number of rounds in which texts are drawn until enough questions are kept."""
_PASSAGES = 5
_COPIED_RUN = 6
"""Consecutive words from the evidence that make a question a copy of it."""
_SHORTEST_TEXT = 200

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to generate: the number of queries, and the fractions with several pieces of evidence or with none.

    A question is dropped as trivially lexical if more than the fraction `overlap` of its content words (stems) occur in
    its evidence. `window` is the maximum length of the texts shown to the model, in characters.
    """

    count: int = 50
    several: float = 0.25
    unanswerable: float = 0.1
    overlap: float = 0.75
    window: int = 6000
    seed: int = 0

    def kinds(self, round_: int, count: int) -> list[str]:
        """The kinds of `count` questions for one round, in an order drawn from the seed."""
        some, none = round(count * self.several), round(count * self.unanswerable)
        kinds = [SEVERAL] * some + [UNANSWERABLE] * none + [SINGLE] * max(0, count - some - none)
        random.Random(f"kinds {self.seed} {round_}").shuffle(kinds)
        return kinds[:count]


@dataclass(frozen=True)
class Candidate:
    """A question as written by the model; `spans` are the offsets of its quotes in the document, in characters."""

    question: str
    answer: str
    kind: str
    doc: Document
    spans: tuple[tuple[int, int], ...]
    overlap: float = 0.0

    @property
    def quotes(self) -> list[str]:
        """The text of each span."""
        return [self.doc.text[start:end] for start, end in self.spans]


@dataclass
class Generated:
    """The queries kept, as records of a query file, and the number of dropped ones by reason."""

    records: list[dict[str, Any]] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    example: str = ""
    """The fault of the first question that was not usable."""

    def drop(self, reason: str) -> None:
        """Count a dropped question."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


@dataclass(frozen=True)
class GenerationModels:
    """The models that write and check questions, the caller that asks them, and where expected costs are reported.

    `price` is in dollars per million prompt and answer tokens.
    """

    writer: QueryWriter
    checker: AnswerChecker
    caller: Caller
    price: tuple[float, float] | None = None
    notify: Notify = lambda _: None

    def ask(self, prompter: Any, tasks: list[Task], what: str) -> dict[Task, Any]:
        """Return an answer or a failure for each task, after reporting the calls and cost that are expected."""
        left = missing(self.caller.answers, prompter, tasks)
        cost: Estimate = estimate(self.caller.answers, prompter, left, self.price)
        if cost.calls:
            self.notify(cost.summary(what))
            BatchRunner(self.caller).ask([(prompter, tasks)], what)
        return dict(stored(self.caller.answers, prompter, tasks))


def generate(documents: Sequence[Document], known: Sequence[str], plan: Plan, models: GenerationModels) -> Generated:
    """Have queries written until `plan.count` are kept, for at most `ROUNDS` rounds.

    `known` are existing questions; repetitions of them are dropped. The same documents, plan and model give the same
    queries, as all answers are cached. Raises JudgeError if the model cannot be asked, DataError if no document is long
    enough.
    """
    passage_search = PassageSearch(documents)
    made, kept = Generated(), list[Candidate]()
    texts = _texts(documents, plan)
    calls = 0
    for round_ in range(ROUNDS):
        wanted = plan.count - len(kept)
        drawn = _draw(texts, plan.kinds(round_, wanted), calls)
        calls += -(-wanted // BATCH)
        candidates = _written(models, drawn, made)
        candidates = _filtered(candidates, [*known, *(one.question for one in kept)], plan, made)
        kept += _checked(models, candidates, passage_search, made)
        kept = kept[: plan.count]
        if len(kept) == plan.count:
            break
    record = {"model": models.writer.model, "prompt": prompt_digest(models.writer)}
    made.records = [_record(at, one, record) for at, one in enumerate(kept, 1)]
    return made


def _texts(documents: Sequence[Document], plan: Plan) -> Sequence[Chunk]:
    """The texts to ask about, in random order: one from each document, then a second one from each, and so on."""
    chance = random.Random(f"texts {plan.seed}")
    piles = []
    for number, doc in enumerate(documents):
        long = [part for part in snippets(doc, plan.window) if len(part.text) >= min(_SHORTEST_TEXT, plan.window)]
        parts = [(number, part.start, part.end) for part in long]
        chance.shuffle(parts)
        piles.append(parts)
    chance.shuffle(piles)
    texts = [pile[nth] for nth in range(max(map(len, piles), default=0)) for pile in piles if nth < len(pile)]
    if not texts:
        raise DataError(f"no document has {_SHORTEST_TEXT} characters to ask about")

    def text(at: int) -> Chunk:
        number, start, end = texts[at]
        return Chunk.of(documents[number], start, end)

    return Made(len(texts), text)


def _draw(texts: Sequence[Chunk], kinds: Sequence[str], first: int) -> dict[Task, Chunk]:
    """A task for each question, in calls about one text each, from the text numbered `first` on.

    If the texts run out, more questions about the first texts are requested.
    """
    calls = -(-len(kinds) // BATCH)
    drawn = {}
    for at, kind in enumerate(kinds):
        number = first + at % calls
        text = texts[number % len(texts)]
        take = number // len(texts) * BATCH + at // calls
        drawn[Task("", (text.text,), kind, text.known_document().title, take=take)] = text
    return drawn


def _written(models: GenerationModels, drawn: Mapping[Task, Chunk], made: Generated) -> list[Candidate]:
    """The questions written for the drawn texts; counts unusable ones in `made`."""
    found = models.ask(models.writer, list(drawn), "questions to write")
    candidates = []
    for task, text in drawn.items():
        outcome = found[task]
        if isinstance(outcome, Completion):
            candidates.append(_candidate(task, text, outcome))
        elif isinstance(outcome, Failure):
            made.example = made.example or str(outcome)
            made.drop(f"not usable as written ({outcome.kind})")
    return candidates


def _checked(
    models: GenerationModels, candidates: Sequence[Candidate], passage_search: PassageSearch, made: Generated
) -> list[Candidate]:
    """The questions that their evidence answers, or, if unanswerable, that the best passages do not answer."""
    tasks = [Task(one.question, tuple(_shown(one, passage_search))) for one in candidates]
    found = models.ask(models.checker, [task for task in tasks if task.texts], "questions to check")
    kept = []
    for one, task in zip(candidates, tasks, strict=True):
        outcome = found.get(task, Label(0))
        if not isinstance(outcome, Label):
            made.drop("could not be checked")
        elif one.kind == UNANSWERABLE and outcome.grade > 0:
            made.drop("meant to have no answer, but the corpus has one")
        elif one.kind != UNANSWERABLE and outcome.grade < 2:
            made.drop("not answered by its own evidence")
        else:
            kept.append(one)
    return kept


def _shown(one: Candidate, passage_search: PassageSearch) -> list[str]:
    if one.kind != UNANSWERABLE:
        return one.quotes
    return [hit.chunk.text for hit in passage_search.search(one.question, _PASSAGES)]


def _candidate(task: Task, text: Chunk, written: Completion) -> Candidate:
    question, answer, *quotes = written.texts
    starts = [text.start + text.text.index(quote) for quote in quotes]
    spans = sorted((start, start + len(quote)) for start, quote in zip(starts, quotes, strict=True))
    return Candidate(question, answer, task.item, text.known_document(), tuple(spans))


def _filtered(candidates: Sequence[Candidate], known: Sequence[str], plan: Plan, made: Generated) -> list[Candidate]:
    """The questions that neither copy their evidence nor repeat another question, with their overlap."""
    stems = Analyzer("porter", "lucene")
    fresh = []
    for one in candidates:
        overlap = lexical_overlap(one.question, one.quotes, stems)
        if overlap > plan.overlap or copies(one.question, one.quotes):
            made.drop("trivially lexical: it repeats the words of its evidence")
        else:
            fresh.append(replace(one, overlap=round(overlap, 3)))
    texts = [*known, *(one.question for one in fresh)]
    repeated = {near_duplicate.text - len(known) for near_duplicate in near_duplicate_queries(texts)}
    kept: list[Candidate] = []
    for at, one in enumerate(fresh):
        if at in repeated or any(_same_need(one, other, stems) for other in kept):
            made.drop("asks nearly the same as another question")
        else:
            kept.append(one)
    return kept


def lexical_overlap(question: str, quotes: Sequence[str], stems: Callable[[str], list[str]]) -> float:
    """The fraction of a question's content words (stems) that occur in its evidence; 0 if there is no evidence."""
    asked, there = set(stems(question)) - _QUESTION_WORDS, {stem for quote in quotes for stem in stems(quote)}
    return len(asked & there) / len(asked) if asked and quotes else 0.0


_QUESTION_WORDS = frozenset(
    ["what", "which", "who", "whose", "when", "where", "why", "how", "do", "doe", "did", "can", "should"]
)


def copies(question: str, quotes: Sequence[str]) -> bool:
    """Whether the question contains six consecutive words of its evidence."""
    plain = Analyzer("none", "none")
    words = plain(question)
    evidence = " \n ".join(" ".join(plain(quote)) for quote in quotes)
    runs = (" ".join(words[at : at + _COPIED_RUN]) for at in range(len(words) - _COPIED_RUN + 1))
    return any(f" {run} " in f" {evidence} " for run in runs)


def _same_need(one: Candidate, other: Candidate, stems: Callable[[str], list[str]]) -> bool:
    """Whether the evidence of two questions overlaps, and they share at least half of their content words."""
    if one.doc.id != other.doc.id or not one.spans:
        return False
    shared = any(a < d and c < b for a, b in one.spans for c, d in other.spans)
    left, right = set(stems(one.question)), set(stems(other.question))
    return shared and 2 * len(left & right) >= len(left | right)


def _record(number: int, one: Candidate, writer: Mapping[str, str]) -> dict[str, Any]:
    evidence = [
        {"doc": one.doc.id, "start": start, "end": end, "quote": one.doc.text[start:end]} for start, end in one.spans
    ]
    synthetic = {**writer, "about": one.doc.id, "overlap": one.overlap, "reviewed": False}
    record: dict[str, Any] = {"id": f"s{number:04d}", "text": one.question, "evidence": evidence}
    record |= {"answer": one.answer} if one.answer else {}
    # All questions about one document form one cluster, including those it does not answer.
    return record | {"metadata": {"type": one.kind, "group": one.doc.id, "synthetic": synthetic}}


def copies_elsewhere(record: Mapping[str, Any], documents: Mapping[str, Document]) -> int:
    """How often the quotes of a record occur in their documents apart from the marked places."""
    return sum(
        len(occurrences(documents[item["doc"]].text, item["quote"])) - 1
        for item in record["evidence"]
        if "quote" in item
    )
