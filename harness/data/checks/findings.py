"""A finding, and what each kind of finding means."""

from typing import Literal, NamedTuple

Level = Literal["error", "warning"]

ERRORS = {
    "malformed": "cannot be read; what stands behind it was not looked at",
    "not-pinned": "the file is not the one the manifest pins",
    "empty-file": "holds no document, or no query",
    "duplicate-id": "an id stands twice",
    "unknown-document": "evidence in a document that the corpus lacks",
    "not-absent": "marked absent from the corpus, and is there",
    "out-of-range": "a span that is not inside its document",
    "shifted": "the quote stands elsewhere in the document",
    "quote-differs": "the quote is not what stands there, nor anywhere else in the document",
}
WARNINGS = {
    "absent-document": "judged relevant, and not in the corpus: no retriever can find it; it counts as missed",
    "ambiguous": "the text of the span stands several times in its document",
    "white-space-edge": "a span begins or ends with white space",
    "blank-evidence": "a span of nothing but white space: any trial may find it by chance",
    "inside-word": "a span begins or ends inside a word",
    "overlapping-evidence": "two items of one query share text, which then counts twice",
    "empty-document": "a document without text",
    "nul": "a document with a NUL character, which some tools cut at",
    "duplicate-document": "the same text as an earlier document",
    "near-duplicate-document": "nearly the same text as an earlier document: either answers, one is credited",
    "empty-query": "a query without text",
    "duplicate-query": "asks the same as an earlier query",
    "near-duplicate-query": "nearly the words and the evidence of an earlier query: both count as little more than one",
    "no-evidence": "a query without evidence: unanswerable, left out of the means",
    "leaking-query": "the query stands word for word in the corpus: any lexical search finds that place",
    "self-query": "the query is itself a document, which is then its best hit; see `ignore`",
    "short-documents": "most documents are so short that chunkers do not differ on them",
    "few-queries": "too few queries to see the effect sought",
    "few-clusters": "queries about too few documents, or groups, to say anything about others",
    "query-in-two-sets": "asks the same as a query of another set: what one set chose is not tested on the other",
    "ignored-evidence": "evidence in a document that the query ignores: it can never be found",
    "evidence-cut": "no chunk of any chunking of the experiment holds the evidence whole",
    "same-chunks": "chunkings of the experiment cut most documents alike",
}
CODES = ERRORS | WARNINGS
"""What each kind of finding means: an error keeps a data set from being used, a warning makes its numbers doubtful."""


class Finding(NamedTuple):
    """One thing wrong, and where: file and line, or the file alone for what concerns all of it."""

    code: str
    where: str
    what: str

    @property
    def level(self) -> Level:
        return "error" if self.code in ERRORS else "warning"

    def as_json(self) -> dict[str, str]:
        """As it is written in JSON."""
        return {"level": self.level, **self._asdict()}
