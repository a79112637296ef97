"""TREC collections: documents and topics in SGML or as lines of id and text, qrels, and runs of other systems."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import DataError
from harness.core.text_files import Line, bare_name, is_comment
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.fields import text_of
from harness.data.importers.judgments import Asked, Judged, read_judgments, write_judged
from harness.data.importers.options import Options
from harness.data.importers.source import Source

# No backtracking (`++`, `(?>…)`): a malformed tag could take extremely long.
_TAG = re.compile(r"</?[A-Za-z][\w.-]*+(?:\s++[\w:-]++\s*+=\s*+(?>\"[^\"<>]*+\"|'[^'<>]*+'|[^\s<>]++))*+\s*+/?>")
_EDGE = re.compile(r"(?i)(?=<doc>)|(?<=</doc>)")
_TITLES = ("title", "headline", "head", "ti")
_HEADERS = ("docno", "docid", "dochdr", "docoldno", "fileid", "date", "parent")
_TOPIC_FIELD = re.compile(r"(?i)<(num|title|desc|narr)>")
_LABEL = re.compile(r"(?i)\A\s*(number|topic|description|narrative)\s*:")


def import_trec(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a TREC collection; each qrels file is a query set. Without a corpus or topics, ids replace the texts.

    Files that are not given are found by name: documents in `corpus/`, `corpus*` or `doc*`, judgments in `qrel*`,
    topics in `topic*` or `quer*`.
    """
    corpus = _corpus_files(source, options.corpus)
    for path in corpus:
        for line, name, title, text in _documents(source, path):
            writer.document(line, name, text, title, titles="text")
    given = {name or options.name: source.file(file) for name, file in options.qrels.items()}
    qrels = given or {options.name: _the_one(source, _named(source, "qrel*", "qrels/*"), "judgments", "--qrels")}
    judged = {name: read_judgments(source, path, writer) for name, path in qrels.items()}
    if not corpus:
        _stand_ins(source, writer, options, judged)
    topics = _asked(source, options, judged)
    for name, found in judged.items():
        asked = topics[name]
        if not asked:
            asked = {query: Asked(one.line, query, {}) for query, one in found.items()}
            writer.counts.add("queries without a topic: the id is their text", len(asked))
        write_judged(writer, name, asked, found, qrels[name])


def _corpus_files(source: Source, given: str | None) -> list[Path]:
    if given and not (source.folder / given).is_dir():
        return [source.file(given)]
    patterns = (f"{given}/**/*",) if given else ("corpus/**/*", "corpus*", "doc*")
    return next((found for pattern in patterns if (found := _named(source, pattern))), [])


def _named(source: Source, *patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in source.all(pattern) if path.is_file()})


def _the_one(source: Source, found: list[Path], what: str, option: str) -> Path:
    if len(found) == 1:
        return found[0]
    names = f"{', '.join(path.name for path in found)} could all be {what}" if found else f"no file of {what}"
    raise DataError(f"{source.folder}: {names}; name the file with {option}")


def _asked(source: Source, options: Options, judged: Mapping[str, Mapping[str, Judged]]) -> dict[str, dict[str, Asked]]:
    """The topics of each set: from its own file, the files given for all sets, or the file with all judged queries."""
    given = {name: _topics(source, source.file(file), options.topic) for name, file in options.queries.items()}
    if given:
        shared = {topic: one for name, found in given.items() if name not in judged for topic, one in found.items()}
        missing = [name for name in judged if name not in given and not shared]
        if missing:
            raise DataError(f"{source.folder}: no topics for the set '{missing[0]}'; name them with --queries")
        return {name: given.get(name, shared) for name in judged}
    paths = _named(source, "topic*", "quer*")
    every = {path: _topics(source, path, options.topic) for path in paths}
    if not paths:
        return {name: {} for name in judged}
    needed = {query for found in judged.values() for query in found}
    fitting = [path for path in paths if needed <= every[path].keys()] if len(paths) > 1 else paths
    return dict.fromkeys(judged, every[_the_one(source, fitting or paths, "topics", "--queries")])


def _stand_ins(
    source: Source, writer: DatasetWriter, options: Options, judged: Mapping[str, Mapping[str, Judged]]
) -> None:
    """Add a document for every id that is judged or ranked, which is enough to score the runs of other systems."""
    names: dict[str, Line] = {}
    for found in judged.values():
        for one in found.values():
            names.update(dict.fromkeys(one.grades, one.line))
    for file in options.runs.values():
        for line, text in source.text_lines(source.file(file)):
            columns = text.split()
            if len(columns) >= 6 and not is_comment(text):
                names.setdefault(columns[2], line)
    for name, line in names.items():
        writer.document(line, name, name)
    writer.counts.add("documents without a text: the id is their text", len(names))


def _documents(source: Source, path: Path) -> Iterator[tuple[Line, str, str, str]]:
    """Place, id, title and text of each document, one at a time: `<DOC>` elements, or lines of id and text."""
    if bare_name(path).endswith((".tsv", ".jsonl")):
        yield from _rows(source, path)
        return
    first: Line | None = None
    parts: list[str] = []
    for line, written in source.text_lines(path):
        for text in _EDGE.split(written):
            tag = text.strip().lower()
            if tag.startswith("<doc>"):
                if first is not None:
                    raise line.fault(f"<DOC> inside the document that begins in line {first.number}")
                first, parts = line, [text.strip()[5:]]
            elif first is not None:
                parts.append(text)
            elif tag and not tag.startswith(("<?xml", "<!", "<root", "</root")):
                raise line.fault(f"expected <DOC>, got {text.strip()!r:.40}")
            if first is not None and tag.endswith("</doc>"):
                yield _document(first, "\n".join(parts).rstrip()[: -len("</doc>")])
                first = None
    if first is not None:
        raise first.fault("the document is not closed by </DOC>")


def _document(line: Line, inside: str) -> tuple[Line, str, str, str]:
    named = [inside[slice(*found.inside)].strip() for found in _elements(inside, ("docno",))][:1]
    if not named or not named[0]:
        raise line.fault("the document has no <DOCNO>")
    titles = _elements(inside, _TITLES)
    title = " ".join(_bare(inside[slice(*titles[0].inside)]).split()) if titles else ""
    texts = [inside[slice(*found.inside)] for found in _elements(inside, ("text",))]
    # Without <TEXT>, everything except the headers and the title is text.
    rest = _without(inside, _elements(inside, _HEADERS))
    body = "\n\n".join(_bare(part) for part in texts) if texts else _bare(_without(rest, _elements(rest, _TITLES)[:1]))
    return line, named[0], title, body


class _Element(NamedTuple):
    """The offsets of an element, and of the markup inside its tags."""

    start: int
    end: int
    inside: tuple[int, int]


def _elements(markup: str, names: Sequence[str]) -> list[_Element]:
    """The elements with these names, in order: from an opening tag to the next closing tag of the same name."""
    tags = [*re.finditer(rf"(?i)<(?P<close>/?)(?P<name>{'|'.join(names)})>", markup)]
    closing = {name: [tag for tag in tags if tag["close"] and tag["name"].lower() == name] for name in names}
    at = dict.fromkeys(names, 0)
    found: list[_Element] = []
    for tag in tags:
        name = tag["name"].lower()
        if tag["close"] or (found and tag.start() < found[-1].end):
            continue
        ends = closing[name]
        while at[name] < len(ends) and ends[at[name]].start() < tag.end():
            at[name] += 1
        if at[name] < len(ends):
            end = ends[at[name]]
            found.append(_Element(tag.start(), end.end(), (tag.end(), end.start())))
    return found


def _without(markup: str, elements: Sequence[_Element]) -> str:
    parts, done = [], 0
    for element in elements:
        parts.append(markup[done : element.start])
        done = element.end
    return "".join([*parts, markup[done:]])


def _bare(markup: str) -> str:
    return html.unescape(_TAG.sub("", markup)).strip()


def _rows(source: Source, path: Path) -> Iterator[tuple[Line, str, str, str]]:
    """Place, id, title and text of each line: id and text separated by a tab, or JSON with `id` and `text`."""
    if bare_name(path).endswith(".jsonl"):
        for line, record in source.json_lines(path):
            key = next((key for key in ("id", "_id", "docid", "doc_id", "qid") if key in record), "id")
            text = next((key for key in ("text", "contents", "title") if key in record), "text")
            yield line, text_of(line, record, key), text_of(line, record, "title", ""), text_of(line, record, text)
        return
    for line, written in source.text_lines(path):
        if written.strip():
            name, tab, text = written.partition("\t")
            if not tab or "\r" in written:
                raise line.fault("expected id and text separated by a tab, and lines that end in \\n or \\r\\n")
            yield line, name.strip(), "", text.strip()


def _topics(source: Source, path: Path, field: str) -> dict[str, Asked]:
    lines = list(source.text_lines(path))
    # Split by lines: a field without an end tag ends where the next one begins.
    begins = [at for at, (_, text) in enumerate(lines) if text.strip().lower().startswith("<top>")]
    found: dict[str, Asked] = {}
    if not begins:
        rows = ((line, name, text) for line, name, _, text in _rows(source, path))
    else:
        bounds = zip(begins, [*begins[1:], len(lines)], strict=True)
        parts = ((lines[lo][0], "\n".join(text for _, text in lines[lo:hi])) for lo, hi in bounds)
        rows = (_topic(line, part, field) for line, part in parts)
    for line, name, text in rows:
        if name in found:
            raise line.fault(f"topic '{name}' already occurs in {found[name].line.short}")
        found[name] = Asked(line, text, {})
    if not found:
        raise DataError(f"{path}: contains no topic")
    return found


def _topic(line: Line, part: str, field: str) -> tuple[Line, str, str]:
    ends = [*_TOPIC_FIELD.finditer(part)]
    fields: dict[str, str] = {}
    for at, found in enumerate(ends):
        end = ends[at + 1].start() if at + 1 < len(ends) else len(part)
        inside = _TAG.sub("", part[found.end() : end])
        fields.setdefault(found[1].lower(), " ".join(html.unescape(_LABEL.sub("", inside)).split()))
    if not fields.get("num"):
        raise line.fault("the topic has no <num>")
    if not fields.get(field):
        raise line.fault(f"topic '{fields['num']}' has no <{field}>; see --topic")
    return line, fields["num"], fields[field]
