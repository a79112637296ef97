"""Shared parts of augmenters whose contexts a model writes: the shown document, and checks of the written text."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from harness.components.component import Fraction
from harness.components.llm_roles import LlmAugmenter
from harness.core.records import Document
from harness.llm import AnswerSchema, Completion, Entry, Failure, Prompt, Task, Text, fence, folded, nonce

LONGEST = 900
"""The maximum length of a context in characters; a longer text retells the document."""

_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+.*$")
_OPENING = re.compile(
    r"(?is)\A\s*(?:(?:sure|certainly|of course|okay|ok)\b[^\n.:]*[.:!]\s*)?"
    r"(?:here(?:'s| is| are)\b[^\n:]{0,80}:\s*|(?:the )?(?:context|summary)\s*:\s*)?"
)
_DECLINED = re.compile(r"(?i)\b(i'm sorry|i am sorry|i cannot|i can't|i am unable|i'm unable|as an ai)\b")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


_FORM = AnswerSchema((("text", Text(1200)),))


@dataclass(frozen=True)
class Writer(LlmAugmenter):
    """An augmenter that shows the model a document, one task per call, and accepts only text grounded in it.

    If a document is longer than `window` characters, the model sees its outline and a part of it. A text is rejected
    unless the fraction `grounded` of its content words and all of its numbers occur in what was shown.
    """

    window: Annotated[int, Field(ge=2000)] = 60_000
    grounded: Fraction = 0.8

    system: ClassVar[str] = ""
    slot: ClassVar[str] = ""
    output: ClassVar[int] = 120

    def batches(self, tasks: Sequence[Task]) -> list[tuple[Task, ...]]:
        """Put each task into a call of its own; tasks about the same document follow each other."""
        return [(task,) for task in sorted(tasks)]

    def shared(self, batch: Sequence[Task]) -> str:
        """Return the title and the document; equal for all chunks that see the same part, so servers can cache it."""
        (task,) = batch
        code = nonce([task.reference, task.texts[0]])
        title = f"Title:\n\n{fence('title', code, task.reference)}\n\n" if task.reference else ""
        return f"{title}{fence('document', code, task.texts[0])}"

    def prompt(self, batch: Sequence[Task]) -> Prompt:
        """Return the prompt of one task: the shared document, then the request."""
        (task,) = batch
        return Prompt(self.system, self.request(task), _FORM, {self.slot: task}, self.shared(batch), output=self.output)

    @abstractmethod
    def request(self, task: Task) -> str:
        """Return the part of the prompt that follows the document."""

    def read(self, task: Task, entry: Entry, prompt: Prompt) -> Completion | Failure:
        """Return the checked context, or a Failure that says why it is rejected."""
        return checked_context(entry["text"], f"{task.reference}\n{task.texts[0]}\n{task.item}", self.grounded)


def excerpt(doc: Document, start: int, end: int, window: int) -> str:
    """The document; if it is longer than `window` characters, its outline and the text around `[start, end)`."""
    if len(doc.text) <= window:
        return doc.text
    outline = "\n".join(found[0].strip() for found in _HEADING.finditer(doc.text))[: window // 4]
    room = max(0, window - len(outline) - (end - start)) // 2
    lo, hi = max(0, start - room), min(len(doc.text), end + room)
    part = f"[from character {lo} to {hi} of {len(doc.text)}]\n{doc.text[lo:hi]}"
    return f"[outline]\n{outline}\n\n{part}" if outline else part


def checked_context(text: str, document: str, grounded: float) -> Completion | Failure:
    """Return a context without the model's opening phrases, or a Failure that says why it is rejected."""
    bare = " ".join(_OPENING.sub("", text, count=1).strip().strip('"“”').split())
    if not bare:
        return Failure("schema", "an empty context")
    if _DECLINED.search(bare):
        return Failure("refusal", bare[:120])
    if len(bare) > LONGEST:
        return Failure("schema", f"a context of {len(bare)} characters, over {LONGEST}")
    fault = ungrounded(bare, document, grounded)
    return Failure("evidence_unverified", fault) if fault else Completion((bare,))


def ungrounded(text: str, document: str, grounded: float, besides: frozenset[str] = frozenset()) -> str:
    """Describe what in a text is not supported by a document; empty if it is supported well enough.

    That is, if all its numbers and the fraction `grounded` of its content words occur there. Content words have more
    than three characters; words in `besides` are ignored.
    """
    there = set(_WORD.findall(folded(document)))
    words = {word for word in _WORD.findall(folded(text)) if len(word) > 3 and not word.isdigit()} - besides
    unknown = sorted(word for word in words if word not in there and word.removesuffix("s") not in there)
    numbers = sorted(set(_NUMBER.findall(text)) - set(_NUMBER.findall(document)))
    if numbers:
        return f"numbers that are not in the document: {', '.join(numbers)[:80]}"
    if len(unknown) > (1 - grounded) * len(words):
        return f"{len(unknown)} of {len(words)} content words are not in the document: {', '.join(unknown)[:80]}"
    return ""
