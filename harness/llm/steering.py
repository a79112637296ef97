"""Detects text that addresses its grader: instructions to a grader in twenty languages, including disguised ones."""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from harness.llm.lookalikes import folded_to_ascii, without_format_characters
from harness.llm.steering_words import ENGLISH, LATIN, OTHERS

_NEAR = 60
"""Maximum number of characters between the parts of an instruction."""


class _Compiled(NamedTuple):
    """A language compiled for search: stems for a fast check, and patterns for the positions of matches."""

    english: bool
    latin: bool
    stems: Mapping[str, tuple[str, ...]]
    patterns: Mapping[str, re.Pattern[str]]

    def has(self, text: str, *kinds: str) -> bool:
        """Whether the text contains a stem of each kind; ten times as fast as matching the patterns."""
        for kind in kinds:
            for stem in self.stems[kind]:
                if stem in text:
                    break
            else:
                return False
        return True

    def spans(self, text: str, kind: str) -> list[tuple[int, int]]:
        """The (start, end) character offsets of all matches of a kind, in order."""
        return [found.span() for found in self.patterns[kind].finditer(text)]


@lru_cache(maxsize=1)
def _languages() -> Sequence[_Compiled]:
    made = []
    for language in (*LATIN, *OTHERS):
        latin = language in LATIN
        patterns, stems = {}, {}
        for kind, words in language._asdict().items():
            either = "|".join(re.escape(word).replace(r"\+", r"\s{1,3}") for word in words.split())
            # The grade in an instruction is a separate number, or a word such as "highest".
            number = r"|(?<![\w.])[0-3](?!\w|[.,:]\d)" if kind == "top" else ""
            # English imperatives have a single form: "ignored" and "overrides" are not instructions.
            end = r"(?!\w)" if language is ENGLISH and kind == "ignore" else ""
            patterns[kind] = re.compile(rf"(?<!\w)(?:{either}){end}{number}" if latin else rf"(?:{either}){number}")
            stems[kind] = tuple(word.split("+")[-1] for word in words.split()) + (tuple("0123") if number else ())
        made.append(_Compiled(language is ENGLISH, latin, stems, patterns))
    return made


_SPELLED = ("ignore", "disregard", "instruction", "grade", "score", "relevant", "rating", "system", "assign", "prompt")
_TALK = re.compile(
    r"(?<!\w)(?:system|developer|assistant)\s{0,3}(?:prompt|message|:)|<\|?im_(?:start|end)|\[/?inst\]"
    r"|(?:^|\W)(?:instructions?|note) (?:to|for) (?:the )?(?:grader|judge|assessor|evaluator|model|ai)(?!\w)"
    r"""|[{,]\s{0,8}["'][cg]\d{2}["']\s{0,8}:"""
)
_JUDGED = re.compile(r"relevant|grade|score|rated|rating|perfect")
_CLAIM = re.compile(r"\s{1,3}(?:is|deserves|must|should)(?!\w)")
_SLOT = re.compile(r"(?<!\w)[cg]\d{2}(?!\w)")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{120,}={0,2}")
_ENCODED_RUN = re.compile(r"[A-Za-z0-9+/_\-]{24,}={0,2}")
_LEET = str.maketrans("013457@$!|", "oieast" + "asil")
_LEET_L = str.maketrans("013457@$!|", "oleast" + "asil")
_DISGUISED = re.compile(r"(?=[\w@$!|]{0,40}[a-z])(?=[\w@$!|]{0,40}[0-9@$!|])[\w@$!|]{3,40}")
_MIXED = re.compile(r"[a-z][0-9@$!|]|[0-9@$!|][a-z]")
_INSIDE = re.compile(r"(?<=[^\W_])[._\-*|~^+=·•/\\]{1,3}(?=[^\W_])")
_APART = re.compile(r"(?:(?<![^\W_])[^\W_][\W_]{1,3}){4}")
_TOKEN = re.compile(r"[^\W_]+")


def steers(text: str) -> bool:
    """Whether a text gives instructions to a grader, or imitates a system message or a grader's answer."""
    native = text.lower()
    if not text.isascii():
        native = without_format_characters(unicodedata.normalize("NFKC", text)).lower()
    plain = folded_to_ascii(native).lower()
    languages = [language for language in _languages() if language.latin]
    if _orders(plain, languages) or _talks(plain):
        return True
    # Disguised instructions are searched for only in English, the language of most prompts.
    if any(_orders(variant, languages[:1]) or _talks(variant) for variant in _variants(plain)):
        return True
    if not native.isascii():
        others = [language for language in _languages() if not language.latin]
        if _orders(native, others) or _orders(native.replace(" ", ""), others):
            return True
    return _spelled_out(native) or any(steers(inner) for inner in _decoded(text))


def _talks(text: str) -> bool:
    """Whether a text imitates a system message, addresses its judge, or has the form of an answer."""
    return any(hint in text for hint in _HINTS) and _TALK.search(text) is not None


_HINTS: tuple[str, ...] = (
    "system",
    "developer",
    "assistant",
    "im_",
    "inst]",
    "grader",
    "judge",
    "assessor",
    "evaluator",
    "model",
    "ai",
)
_HINTS += ('"c', '"g', "'c", "'g")


def _variants(plain: str) -> Iterator[str]:
    """The text with each known disguise undone."""
    if _MIXED.search(plain):
        for table in (_LEET, _LEET_L):
            yield _DISGUISED.sub(lambda found, table=table: found[0].translate(table), plain)  # type: ignore[misc]
    if _INSIDE.search(plain):
        yield _INSIDE.sub("", plain)
    if "&" in plain and ";" in plain:
        yield html.unescape(plain).lower()
    if "%" in plain:
        yield unquote(plain, errors="replace").lower()
    if "\\" in plain:
        yield re.sub(r"\\u([0-9a-f]{4})|\\x([0-9a-f]{2})", lambda m: chr(int(m[1] or m[2], 16)), plain).lower()
    backwards = plain[::-1]
    if any(word in backwards for word in ("ignore", "instruct", "grade", "score")):
        yield backwards


def _orders(text: str, languages: Sequence[_Compiled]) -> bool:
    """Whether a text says in any of the languages: ignore the instructions, rate this highest, or this is relevant."""
    for language in languages:
        latin = language.latin
        if language.has(text, "ignore", "orders"):
            ignore, orders = language.spans(text, "ignore"), language.spans(text, "orders")
            if _follows(ignore, orders) or (not latin and _follows(orders, ignore)):
                return True
        slots = [found.span() for found in _SLOT.finditer(text)] if language.english else []
        if not slots and not language.has(text, "grade"):
            continue
        grades = sorted([*slots, *language.spans(text, "grade")])
        if language.has(text, "rate", "top"):
            rate, top = language.spans(text, "rate"), language.spans(text, "top")
            if _together(rate, grades, top, in_order=language.english):
                return True
        if language.has(text, "passage"):
            passage = language.spans(text, "passage")
            if language.english:
                passage = [(start, end) for start, end in passage if _CLAIM.match(text, end)]
                grades = [found.span() for found in _JUDGED.finditer(text)]
            if _follows(passage, grades) or (not latin and _follows(grades, passage)):
                return True
    return False


def _follows(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> bool:
    """Whether a span of `second` begins within _NEAR characters after one of `first`; both are sorted."""
    at = 0
    for _, end in first:
        while at < len(second) and second[at][0] < end:
            at += 1
        if at < len(second) and second[at][0] - end <= _NEAR:
            return True
    return False


def _together(
    rate: Sequence[tuple[int, int]],
    grade: Sequence[tuple[int, int]],
    top: Sequence[tuple[int, int]],
    *,
    in_order: bool,
) -> bool:
    """Whether three different words, one of each kind, occur close to each other."""
    if not rate or not grade or not top:
        return False
    grade_at = top_at = 0
    for start, end in rate:
        low = end if in_order else max(0, start - 2 * _NEAR)
        while grade_at < len(grade) and grade[grade_at][0] < low:
            grade_at += 1
        while top_at < len(top) and top[top_at][0] < low:
            top_at += 1
        near = [one for one in grade[grade_at : grade_at + 8] if one[0] <= end + _NEAR and one != (start, end)]
        for one in near:
            limit = (one[1] if in_order else one[0] - _NEAR, one[1] + _NEAR)
            for other in top[top_at : top_at + 16]:
                if limit[0] <= other[0] <= limit[1] and other not in (one, (start, end)) and not _overlap(other, one):
                    return True
    return False


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _spelled_out(text: str) -> bool:
    """Whether separated letters spell a word of an instruction: `i g n o r e`, `g.r.a.d.e`."""
    plain = folded_to_ascii(text)
    if not _APART.search(plain):
        return False
    run: list[str] = []
    for found in _TOKEN.finditer(plain):
        if len(found[0]) == 1:
            run.append(found[0])
            continue
        if len(run) > 4 and any(word in "".join(run) for word in _SPELLED):
            return True
        run = []
    return len(run) > 4 and any(word in "".join(run) for word in _SPELLED)


def _decoded(text: str) -> Iterator[str]:
    """Readable texts encoded in base64 or hex inside a text."""
    for found in _ENCODED_RUN.finditer(text):
        run = found[0].rstrip("=")[:4000]
        for decode in (_from_base64, bytes.fromhex):
            try:
                inner = decode(run).decode()
            except (ValueError, binascii.Error):
                continue
            if len(inner) > 8 and inner.isprintable():
                yield inner


def _from_base64(run: str) -> bytes:
    return base64.urlsafe_b64decode(run.replace("+", "-").replace("/", "_") + "=" * (-len(run) % 4))


def encoded(text: str) -> bool:
    """Whether a text contains a run of at least 120 characters that looks like base64 or hex."""
    return _ENCODED.search(text) is not None
