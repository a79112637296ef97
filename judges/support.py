"""Does a passage support a statement, as far as words and a sentence encoder can tell? No language model is asked.

A passage supports a statement where

    containment + 0.6 * closest >= 0.75

`containment` is the share of the statement's words (Snowball stems; stop words left out; capitalised words and those
with a digit count twice) that occur in the passage, `closest` the greatest cosine of all-MiniLM-L6-v2 between the
statement and a sentence of the passage. The constants were chosen on the development claims of WiCE (Kamoi et al.,
EMNLP 2023); on its test claims the rule agrees with people at kappa .57 in passages of 200 words and .63 in those of
300 (by words alone, 0.42: .53 and .59). It knows nothing of negation, and takes one name in a sentence for another.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from harness.core.records import Vectors
from harness.llm import Judgment, Label, Task

CAUTION = "no LLM was used; a screen by words, blind to negation, not to be read as a judge's"

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
    """The stems of a text with their weights."""
    weights: dict[str, int] = {}
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        lower = word.lower()
        if lower not in _STOP:
            telling = 2 if word[0].isupper() or any(sign.isdigit() for sign in word) else 1
            stem = _stem(lower)
            weights[stem] = max(telling, weights.get(stem, 0))
    return weights


def containment(statement: str, passage: str) -> float:
    """The weighted share of the statement's words that occur in the passage; 0 where it has none."""
    wanted, there = _stems(statement), _stems(passage)
    total = sum(wanted.values())
    return sum(weight for stem, weight in wanted.items() if stem in there) / total if total else 0.0


def numbers_kept(statement: str, passage: str) -> bool:
    """Whether every number of the statement occurs in the passage."""
    return set(_NUMBER.findall(statement)) <= set(_NUMBER.findall(passage))


def supported(tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors] | None) -> Mapping[Task, Judgment]:
    """For each task, whether its text supports its item: 2 fully, 1 but for a number, 0 not.

    Sentences are embedded only where the cosine can turn the scale. Without `embed`, words alone decide.
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
    """The greatest cosine between each task's item and a sentence of its text."""
    sentences = {task: [s for s in _SENTENCE.split(task.texts[0]) if s.strip()] for task in tasks}
    distinct = list(dict.fromkeys([s for found in sentences.values() for s in found] + [task.item for task in tasks]))
    if not distinct:
        return {}
    place = {text: at for at, text in enumerate(distinct)}
    vectors = embed(distinct)
    made = {}
    for task, found in sentences.items():
        cosines = vectors[[place[s] for s in found]] @ vectors[place[task.item]] if found else np.zeros(1)
        # Rounded, so that the last bits of a vector decide nothing.
        made[task] = max(0.0, round(float(cosines.max()), 5))
    return made
