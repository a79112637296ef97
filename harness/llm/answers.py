"""What comes of asking a model: a label, a written text, or a failure of a named kind. Never None, never a number."""

from dataclasses import dataclass
from typing import Literal

FailureKind = Literal[
    "timeout",  # no complete answer before the deadline
    "rate_limit",  # refused as too fast, until patience ran out
    "quota",  # the account has no money left
    "auth",  # no key, a wrong key, or one that may not do this
    "unknown_model",  # the server does not know the model
    "bad_request",  # the server refuses the request itself
    "server",  # an error on the server's side
    "network",  # no connection, or one that broke
    "refusal",  # the model declines to answer
    "content_filter",  # a filter stopped the answer
    "truncated",  # the answer was cut at the token limit
    "invalid_json",  # the answer is no JSON
    "schema",  # JSON, but not of the form asked for
    "missing_label",  # nothing was said about this slot
    "extra_label",  # something was said about a slot that does not exist
    "evidence_unverified",  # the quote does not occur where it should
    "context_too_long",  # more text than the model takes
    "budget",  # not asked: the money set aside is spent
    "offline",  # not asked: only stored answers may be used
    "cancelled",  # not asked: stopped by the user
]
FATAL: frozenset[str] = frozenset({"quota", "auth", "unknown_model"})
"""Kinds that every further call would meet too: they stop the run, with what was finished kept."""

UNASKED: frozenset[str] = frozenset({"budget", "offline", "cancelled"})
"""Kinds that stand for calls not made."""


GREATEST_GRADE = 10
"""No way of asking knows a greater one; the judges' end at 3."""


@dataclass(frozen=True)
class Label:
    """A grade given to one thing, by whom (`llm`, or `exact` where no one had to be asked), and why.

    `quote` is a stretch of the chunk that bears the grade out, verbatim; `flags` are facts a reader should know, such
    as `suspicious`, `windowed` or `in parts`.
    """

    grade: int
    why: str = ""
    quote: str = ""
    by: str = "llm"
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Completion:
    """Text a model wrote, such as the context of a chunk; several texts for a list."""

    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.texts[0]


@dataclass(frozen=True)
class Failure:
    """Why there is no label: the kind, what was seen, and how many requests were sent."""

    kind: FailureKind
    detail: str = ""
    attempts: int = 0

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


Judgment = Label | Failure
Outcome = Label | Completion | Failure
