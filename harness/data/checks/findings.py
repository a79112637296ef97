"""The `Finding` record, and what each kind of finding means."""

from typing import Literal, NamedTuple

Level = Literal["error", "warning"]

ERRORS = {
    "malformed": "cannot be read; the rest of the file was not checked",
    "not-pinned": "the file is not the one that the manifest pins",
    "empty-file": "contains no document or no query",
    "duplicate-id": "an id occurs twice",
    "unknown-document": "evidence in a document that is not in the corpus",
    "not-absent": "marked absent from the corpus but present",
    "out-of-range": "a span that is not inside its document",
    "shifted": "the quote occurs elsewhere in the document",
    "quote-differs": "the quote differs from the text of the span and occurs nowhere else in the document",
}
WARNINGS = {
    "unpinned": "the manifest has no hash of the file, so that a change to it goes unnoticed",
    "no-queries": "no query set yet: nothing can be scored",
    "absent-document": "judged relevant but not in the corpus: no retriever can find it; it counts as missed",
    "ambiguous": "the text of the span occurs several times in its document",
    "white-space-edge": "a span begins or ends with white space",
    "blank-evidence": "a span of only white space: any trial may find it by chance",
    "inside-word": "a span begins or ends inside a word",
    "overlapping-evidence": "two items of one query overlap: the shared text counts twice",
    "empty-document": "a document without text",
    "nul": "a document with a NUL character, where some tools cut the text",
    "duplicate-document": "the same text as an earlier document",
    "near-duplicate-document": "nearly the same text as an earlier document: both answer, only one is credited",
    "empty-query": "a query without text",
    "duplicate-query": "asks the same as an earlier query",
    "near-duplicate-query": "nearly the words and evidence of an earlier query: both count as little more than one",
    "no-evidence": "a query without evidence: unanswerable, left out of the means",
    "leaking-query": "the query occurs word for word in the corpus: any lexical search finds that place",
    "self-query": "the query is itself a document, which is then its top result; see `ignore`",
    "short-documents": "most documents are so short that chunkers do not differ on them",
    "few-queries": "too few queries to detect the effect of interest",
    "few-clusters": "queries about too few documents or groups to generalize to others",
    "query-in-two-sets": "asks the same as a query of another set: the two sets are not independent",
    "ignored-evidence": "evidence in a document that the query ignores: it can never be found",
    "evidence-cut": "no chunk of any chunking of the experiment contains all of the evidence",
    "same-chunks": "chunkings of the experiment cut most documents into the same chunks",
}
CODES = ERRORS | WARNINGS
"""What each kind of finding means. An error makes a data set unusable; a warning makes its results doubtful."""


class Finding(NamedTuple):
    """A problem and where it is: file and line, or only the file if it concerns the whole file."""

    code: str
    where: str
    what: str

    @property
    def level(self) -> Level:
        """`error` or `warning`, by the code."""
        return "error" if self.code in ERRORS else "warning"

    def as_json(self) -> dict[str, str]:
        """The finding as a JSON object with the keys level, code, where and what."""
        return {"level": self.level, **self._asdict()}
