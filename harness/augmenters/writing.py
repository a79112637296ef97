"""What augmenters that have contexts written share: the document as it is shown, and the check of what comes back."""

import re

from harness.llm import Failure, Task, Written, fence, folded, nonce
from harness.model import Document

LONGEST = 900
"""Characters of a context; beyond, it is no context but a retelling."""

_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+.*$")
_OPENING = re.compile(
    r"(?is)\A\s*(?:(?:sure|certainly|of course|okay|ok)\b[^\n.:]*[.:!]\s*)?"
    r"(?:here(?:'s| is| are)\b[^\n:]{0,80}:\s*|(?:the )?(?:context|summary)\s*:\s*)?"
)
_DECLINED = re.compile(r"(?i)\b(i'm sorry|i am sorry|i cannot|i can't|i am unable|i'm unable|as an ai)\b")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def excerpt(doc: Document, start: int, end: int, window: int) -> str:
    """The document; or, where it is longer than `window`, its outline and as much as fits around `[start, end)`."""
    if len(doc.text) <= window:
        return doc.text
    outline = "\n".join(found[0].strip() for found in _HEADING.finditer(doc.text))[: window // 4]
    room = max(0, window - len(outline) - (end - start)) // 2
    lo, hi = max(0, start - room), min(len(doc.text), end + room)
    part = f"[from character {lo} to {hi} of {len(doc.text)}]\n{doc.text[lo:hi]}"
    return f"[outline]\n{outline}\n\n{part}" if outline else part


def document_block(task: Task) -> str:
    """The document as it goes first in a prompt: the same bytes for all chunks that see the same part of it."""
    title = f"Title: {task.reference}\n\n" if task.reference else ""
    return f"{title}{fence('document', nonce([task.texts[0]]), task.texts[0])}"


def checked_context(text: str, document: str, grounded: float) -> Written | Failure:
    """A context fit to be indexed, without the phrases models begin with; or why it is not."""
    bare = " ".join(_OPENING.sub("", text, count=1).strip().strip('"“”').split())
    if not bare:
        return Failure("schema", "an empty context")
    if _DECLINED.search(bare):
        return Failure("refusal", bare[:120])
    if len(bare) > LONGEST:
        return Failure("schema", f"a context of {len(bare)} characters, over {LONGEST}")
    there = set(_WORD.findall(folded(document)))
    words = {word for word in _WORD.findall(folded(bare)) if len(word) > 3 and not word.isdigit()}
    unknown = sorted(word for word in words if word not in there and word.removesuffix("s") not in there)
    numbers = sorted(set(_NUMBER.findall(bare)) - set(_NUMBER.findall(document)))
    if numbers:
        return Failure("evidence_unverified", f"numbers that the document does not have: {', '.join(numbers)[:80]}")
    if len(unknown) > (1 - grounded) * len(words):
        told = f"{len(unknown)} of {len(words)} content words are not in the document: {', '.join(unknown)[:80]}"
        return Failure("evidence_unverified", told)
    return Written((bare,))
