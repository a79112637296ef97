"""Decides by words and a sentence encoder whether a passage supports a statement. No language model is called.

A passage supports a statement if

    containment + 0.6 * closest >= 0.75

`containment` is the fraction of the statement's words (Snowball stems without stop words; words that are capitalised
or contain a digit count twice) that occur in the passage. `closest` is the maximum cosine similarity by
all-MiniLM-L6-v2 between the statement and a sentence of the passage. By words alone, the condition is
containment >= 0.42.

The constants were chosen on the development claims of WiCE (Kamoi et al., EMNLP 2023). On its test claims, the rule
agrees with people at kappa .57 for passages of 200 words and .63 for 300 words (by words alone: .53 and .59). It
ignores negation, and may confuse one name in a sentence with another.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from harness.core.records import Vectors
from harness.llm import Judgment, Label, Task

CAUTION = "no LLM was used; a rough screen by words that ignores negation, not a substitute for a judge"

WEIGHT, THRESHOLD, ALONE = 0.6, 0.75, 0.42

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NUMBER = re.compile(r"\d+(?:[.,/:]\d+)*")
# Lucene's English stop words.
_STOP = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these they
    this to
    was will with""".split()  # noqa: SIM905
)


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=4096)
def _stems(text: str) -> dict[str, int]:
    """The stems of a text with their weights: 2 if capitalised or with a digit, else 1."""
    weights: dict[str, int] = {}
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        lower = word.lower()
        if lower not in _STOP:
            weight = 2 if word[0].isupper() or any(char.isdigit() for char in word) else 1
            stem = _stem(lower)
            weights[stem] = max(weight, weights.get(stem, 0))
    return weights


def containment(statement: str, passage: str) -> float:
    """The weighted fraction of the statement's words that occur in the passage, from 0 to 1; 0 if it has no words."""
    expected, present = _stems(statement), _stems(passage)
    total = sum(expected.values())
    return sum(weight for stem, weight in expected.items() if stem in present) / total if total else 0.0


def numbers_kept(statement: str, passage: str) -> bool:
    """Whether every number of the statement occurs in the passage."""
    return set(_NUMBER.findall(statement)) <= set(_NUMBER.findall(passage))


def supported(tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors] | None) -> Mapping[Task, Judgment]:
    """The label of each task: 2 if its text supports its item, 1 if it does but lacks a number of it, 0 otherwise.

    `embed` maps texts to unit vectors (texts, dimensions). It is called only for texts whose decision depends on the
    similarity. If it is None, words alone decide.
    """
    words = {task: containment(task.item, task.texts[0]) for task in tasks}
    close = dict.fromkeys(tasks, 0.0)
    if embed is not None:
        open_ = [task for task in tasks if THRESHOLD - WEIGHT <= words[task] < THRESHOLD]
        close |= _closest(open_, embed)
    made: dict[Task, Judgment] = {}
    for task in tasks:
        score = words[task] + WEIGHT * close[task]
        found = words[task] >= ALONE if embed is None else score >= THRESHOLD
        why = f"words {words[task]:.2f}" + (f", closest sentence {close[task]:.2f}" if close.get(task) else "")
        grade = 0 if not found else 2 if numbers_kept(task.item, task.texts[0]) else 1
        made[task] = Label(grade, why, by="heuristic")
    return made


def _closest(tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> dict[Task, float]:
    """The maximum cosine similarity between each task's item and a sentence of its text; at least 0."""
    sentences = {task: [s for s in _SENTENCE.split(task.texts[0]) if s.strip()] for task in tasks}
    distinct = list(dict.fromkeys([s for found in sentences.values() for s in found] + [task.item for task in tasks]))
    if not distinct:
        return {}
    place = {text: at for at, text in enumerate(distinct)}
    vectors = embed(distinct)
    made = {}
    for task, found in sentences.items():
        cosines = vectors[[place[s] for s in found]] @ vectors[place[task.item]] if found else np.zeros(1)
        # Rounded, so that results do not depend on the last bits of a vector.
        made[task] = max(0.0, round(float(cosines.max()), 5))
    return made
