"""The form of answer that a question expects, and sentences of that form. English only; otherwise none is expected."""

import re
from functools import lru_cache

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_UNIT = r"(?:second|minute|hour|day|night|week|month|year|decade|centur)\w*"
_NUMBER = (
    r"(?:(?>\d+(?:[.,]\d+)*)|one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|billion)"
)

_ASKS = (
    ("duration", r"\bhow long\b"),
    (
        "number",
        r"\bhow (?:many|much|often|far|old|large|big|hot|high)\b|\bwhat (?:share|number|temperature|percent)",
    ),
    ("time", r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time)\b"),
    ("person", r"\b(?:who|whom|whose)\b"),
    ("place", r"\bwhere\b"),
    ("reason", r"\bwhy\b|\bwhat (?:causes?|caused)\b|\bhow come\b"),
    ("way", r"\bhow (?:to|do|does|did|can|could|should|is|are)\b"),
    ("definition", r"\bwhat (?:is|are|was|were)\b|\bwhat does \w+ mean\b|\bdefine\b"),
)
_FORMS = {
    "duration": rf"\b{_NUMBER}\b[\w\s-]{{0,12}}?\b{_UNIT}",
    "number": rf"\b{_NUMBER}\b",
    "time": rf"\b(?:1[0-9]|20)\d\d\b|\b{_MONTH}\s+\d|\b\d+\s+{_MONTH}|\b{_NUMBER}\s+{_UNIT}|\b\d\d?:\d\d\b|\b\w+day\b",
    "person": r"(?-i:\b[A-Z][\w’'-]+\s+[A-Z][\w’'-]+|(?<=[\w,;] )[A-Z][a-z]+)",
    "place": r"(?-i:\b(?:in|at|on|near|from|to|of)\s+(?:the\s+)?[A-Z])|\b(?:north|south|east|west|beside|under)\b",
    "reason": r"\b(?:because|since|so that|due to|thanks to|therefore|otherwise|as a result|in order to|caused?)\b",
    "way": r"^\s*(?:\d+[.)]|[-*•])\s|\b(?:first|then|next|until|after that|by \w+ing|using|must|should)\b",
    "definition": r"\b(?:is|are|was|were)\s+(?:an?|the|one of)\b|\b(?:means|refers to|stands for|called|known as)\b",
}
_ASKED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _ASKS)
_ANSWERS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _FORMS.items()}


def expected(query: str) -> str | None:
    """The expected form of an answer, by the words of the question; the first match in `_ASKS`, else None.

    >>> expected("How long does it bake?"), expected("Who baked it?"), expected("sourdough starter")
    ('duration', 'person', None)
    """
    return next((kind for kind, pattern in _ASKED if pattern.search(query)), None)


@lru_cache(maxsize=200_000)
def has_form(sentence: str, kind: str) -> bool:
    """Whether a sentence contains an expression of the form `kind`.

    >>> has_form("Bake for 40 minutes.", "duration"), has_form("Bake until brown.", "duration")
    (True, False)
    """
    return bool(_ANSWERS[kind].search(sentence))
