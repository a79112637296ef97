"""`harness data evidence`: find a passage, mark it, and get the line for the query file with exact offsets."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.cli.exit_codes import OK
from harness.core.errors import ConfigError
from harness.core.plurals import plural

if TYPE_CHECKING:
    from harness.core.records import Chunk, Document
    from harness.data.corpus import Documents
    from harness.data.manifest import Manifest
    from harness.data.passage_search import PassageSearch

_HELP = """\
Type words to search. A number opens a passage; `12` or `12-14` then marks sentences of the open passage.
Text pasted between quotes ("…"), or its beginning and end with … between them, marks that text.
`u` undoes the last mark, `a TEXT` sets the answer, `d` finishes the query, `q` quits, `?` shows this help.
"""
_FOUND = 8


def add_evidence_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data evidence`."""
    made.add_argument("dataset", help="a data set folder, or a name under datasets/")
    made.add_argument("--query", metavar="TEXT", help="the text of the query (default: ask for it)")
    made.add_argument(
        "--quote",
        action="append",
        default=[],
        metavar="TEXT",
        help="evidence, or its beginning … end, instead of the dialogue; may be repeated",
    )
    made.add_argument("--doc", metavar="ID", help="the document that contains the quotes")
    made.add_argument("--answer", metavar="TEXT", help="the reference answer")
    made.add_argument("--id", metavar="ID", help="the id of the query (default: made from its set)")
    made.add_argument("--search", metavar="WORDS", help="only search, and print the passages found")
    made.add_argument("--to", metavar="SET", help="add the line to this query set, and update its hash")


def evidence(options: argparse.Namespace) -> int:
    """Search, or print queries with evidence from `--quote` or the dialogue. Raises ConfigError or DataError."""
    from harness.cli.arguments import dataset_folder
    from harness.data.manifest import read_manifest
    from harness.data.open_corpus import open_corpus
    from harness.data.write import writable_set

    manifest = read_manifest(dataset_folder(options.dataset))
    if options.to:
        writable_set(manifest, options.to)  # said before anything is marked
    with open_corpus(manifest) as documents:
        return _marked(manifest, documents, options)


def _marked(manifest: "Manifest", documents: "Documents", options: argparse.Namespace) -> int:
    """Search, or print queries with evidence in these documents."""
    from harness.data.annotation import only_place
    from harness.data.manifest import read_manifest
    from harness.data.passage_search import PassageSearch

    if options.search:
        _show([hit.chunk for hit in PassageSearch(documents).search(options.search, _FOUND)])
        return OK
    if options.quote:
        if not options.query:
            raise ConfigError("data evidence: --quote needs --query")
        marks = [only_place(documents, quote, options.doc) for quote in options.quote]
        return _written(manifest, options, options.query, marks, options.answer)
    print(_HELP)
    dialogue = _Dialogue(documents, PassageSearch(documents))
    asked = options.query or _ask("query> ")
    while asked and asked != "q":
        marked, answer = dialogue.mark(asked)
        if marked is None:
            break
        _written(manifest, options, asked, marked, answer or options.answer)
        manifest = read_manifest(manifest.root)
        if options.query:
            break
        asked = _ask("query> ")
    return OK


def _written(
    manifest: Any,
    options: argparse.Namespace,
    asked: str,
    marks: Sequence["Chunk"],
    answer: str | None,
) -> int:
    from harness.data.annotation import asked_before, doubts, query_line
    from harness.data.write import add_record

    line = query_line(manifest, options.to, asked, marks, answer=answer, name=options.id)
    if asked in asked_before(manifest, options.to):
        print(f"warning: '{options.to}' has this query already", file=sys.stderr)
    if options.to:
        add_record(manifest, options.to, line)
    print(json.dumps(line, ensure_ascii=False))
    for text in doubts(line, [mark.known_document() for mark in marks]):
        print(f"warning: {text}", file=sys.stderr)
    return OK


class _Dialogue:
    """The interactive dialogue: search, open and mark passages, one query after the other."""

    def __init__(self, documents: Sequence["Document"], passage_search: "PassageSearch") -> None:
        self._documents, self._finder = documents, passage_search
        self._found: list[Chunk] = []
        self._open: list[Chunk] = []

    def mark(self, asked: str) -> tuple[list["Chunk"] | None, str | None]:
        """The evidence marked for a query and its answer; (None, None) if the user quits."""
        marks: list[Chunk] = []
        answer, bare = None, False
        self._open = []
        self._search(asked)
        while True:
            text = _ask(f"[{len(marks)} marked]> ")
            if text in (None, "q"):
                if marks:
                    print(
                        f"  {len(marks)} marked and not written; finish a query with `d` to write it", file=sys.stderr
                    )
                return None, None
            if text == "d" and (marks or bare):
                return marks, answer
            bare = text == "d"
            if bare:
                print("  nothing is marked; `d` again writes a query that the corpus does not answer")
                continue
            if not text:
                continue
            if text in ("?", "h", "help"):
                print(_HELP)
                continue
            if text == "u":
                marks = marks[:-1]
            elif text.startswith("a "):
                answer = text[2:].strip()
                print(f"  answer: {answer}")
            elif (made := self._understood(text)) is not None:
                marks.append(made)
                print(f"  marked: '{made.doc}' {made.start}-{made.end}: {made.text!r}")

    def _understood(self, text: str) -> "Chunk | None":
        """The mark that an input line stands for; other lines are carried out, and return None."""
        from harness.data.annotation import between, places

        if re.fullmatch(r"[0-9]{1,6}(-[0-9]{1,6})?", text):
            return self._numbered(text)
        if text[:1] not in ('"', "“", "'"):
            self._search(text)
            return None
        quote = text.strip("\"“”'")
        documents = [self._open[0].known_document()] if self._open else self._documents
        found = between(documents, quote) if "…" in quote or "..." in quote else places(documents, quote)
        if len(found) == 1:
            return found[0]
        print(f"  occurs in {len(found)} places; open its passage, or paste more of it" if found else "  not found")
        return None

    def _numbered(self, text: str) -> "Chunk | None":
        from harness.core.records import Chunk

        first, _, last = text.partition("-")
        lo, hi = sorted((int(first), int(last or first)))
        if self._open:
            if 1 <= lo <= hi <= len(self._open):
                document = self._open[0].known_document()
                return Chunk.of(document, self._open[lo - 1].start, self._open[hi - 1].end)
            print(f"  the passage has {plural(len(self._open), 'sentence')}; search again to see others")
        elif 1 <= lo <= len(self._found):
            self._print_passage(self._found[lo - 1])
        else:
            print(f"  the search found {plural(len(self._found), 'passage')}")
        return None

    def _print_passage(self, passage: "Chunk") -> None:
        from harness.data.annotation import sentences

        self._open = sentences(passage.known_document(), passage.start, passage.end)
        print(f"── {_where(passage)}")
        for number, sentence in enumerate(self._open, 1):
            print(textwrap.fill(sentence.text, 100, initial_indent=f"{number:>3}  ", subsequent_indent="     "))

    def _search(self, words: str) -> None:
        found = [hit.chunk for hit in self._finder.search(words, _FOUND)]
        if not found and self._open:
            print("  nothing found; the passage above is still open")
            return
        self._found, self._open = found, []
        _show(found)


def _show(found: Sequence["Chunk"]) -> None:
    for number, part in enumerate(found, 1):
        text = " ".join(part.text.split())
        print(f"{number:>3}  {_where(part)}: {textwrap.shorten(text, 160, placeholder=' …')}")
    if not found:
        print("  nothing found")


def _where(passage: "Chunk") -> str:
    """The place of a passage: document and characters, and if they are known page and headings."""
    from harness.data.documents import place_in

    inside = place_in(passage.known_document().metadata, passage.start)
    return f"'{passage.doc}' {passage.start}-{passage.end}" + (f" ({inside})" if inside else "")


def _ask(prompt: str) -> Any:
    """A line of input without surrounding white space; None at the end of the input."""
    try:
        return input(prompt).strip()
    except EOFError:
        return None
