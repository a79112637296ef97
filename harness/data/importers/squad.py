"""SQuAD files, version 1 and 2: articles of paragraphs, questions with answers at character offsets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, free_name, span
from harness.data.importers.fields import list_of, object_of, text_of, whole_number
from harness.data.importers.options import Options
from harness.data.importers.source import Source

_BETWEEN = "\n\n"


class Asked(NamedTuple):
    """A question about a paragraph; `answers` are `(text, offset in the paragraph)`, by several annotators."""

    line: Line
    name: str
    text: str
    answers: list[tuple[str, int]]


class Paragraph(NamedTuple):
    """A paragraph with its questions."""

    line: Line
    text: str
    questions: list[Asked]


class Article(NamedTuple):
    """An article with its paragraphs."""

    line: Line
    title: str
    paragraphs: list[Paragraph]


def import_squad(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a SQuAD file; `unit` says whether articles (paragraphs joined by blank lines) or paragraphs are documents.

    The answers of several annotators to one question are equivalent places of one item of evidence; a question that is
    marked impossible, or has no answer, has no evidence.
    """
    path = source.one("the SQuAD file", "*.json")
    place = Line(path, 1, "data")
    content = object_of(place, source.json(path), "the file")
    articles = _articles(path, list_of(Line(path, 1, "(top)"), content, "data"))
    write_articles(writer, options.unit, {options.name: articles})


def write_articles(writer: DatasetWriter, unit: str, sets: Mapping[str, Iterable[Article]]) -> None:
    """Add the articles of all sets, then their questions; articles with the same title are numbered."""
    titles: set[str] = set()
    asked: list[tuple[str, str, int, Asked]] = []
    for queries, article in ((name, article) for name, articles in sets.items() for article in articles):
        name = free_name(article.title, titles)
        writer.counts.add("articles")
        writer.counts.add("paragraphs", len(article.paragraphs))
        at = 0
        for nth, paragraph in enumerate(article.paragraphs, 1):
            document, shift = (name, at) if unit == "article" else (f"{name}#{nth}", 0)
            asked += [(queries, document, shift, question) for question in paragraph.questions]
            at += len(paragraph.text) + len(_BETWEEN)
            if unit == "paragraph":
                writer.document(paragraph.line, document, paragraph.text, article.title)
        if unit == "article":
            whole = _BETWEEN.join(paragraph.text for paragraph in article.paragraphs)
            writer.document(article.line, name, whole, article.title)
    for queries, document, shift, question in asked:
        _write(writer, queries, document, shift, question)


def _write(writer: DatasetWriter, queries: str, document: str, shift: int, question: Asked) -> None:
    places = [span(document, start + shift, start + shift + len(text), text) for text, start in question.answers]
    distinct = [place for at, place in enumerate(places) if place not in places[:at]]
    writer.counts.add("answers", len(places))
    evidence = [{**distinct[0], **({"also": distinct[1:]} if distinct[1:] else {})}] if distinct else []
    answer = question.answers[0][0] if question.answers else None
    writer.query(question.line, queries, NewQuery(question.name, question.text, evidence, answer))


def _articles(path: Any, data: list[Any]) -> Iterator[Article]:
    for a, written in enumerate(data):
        place = Line(path, 1, f"data[{a}]")
        article = object_of(place, written, "article")
        paragraphs = [
            _paragraph(Line(path, 1, f"data[{a}].paragraphs[{p}]"), one)
            for p, one in enumerate(list_of(place, article, "paragraphs"))
        ]
        yield Article(place, text_of(place, article, "title", "") or f"article {a + 1}", paragraphs)


def _paragraph(line: Line, written: Any) -> Paragraph:
    paragraph = object_of(line, written, "paragraph")
    questions = [
        _asked(line._replace(inside=f"{line.inside}.qas[{q}]"), one)
        for q, one in enumerate(list_of(line, paragraph, "qas"))
    ]
    return Paragraph(line, text_of(line, paragraph, "context"), questions)


def _asked(line: Line, written: Any) -> Asked:
    question = object_of(line, written, "question")
    impossible = question.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise line.fault(f"is_impossible: expected true or false, got {impossible!r:.60}")
    marked = list_of(line, question, "answers") if question.get("answers") is not None else []
    answers = [
        (text_of(line, one, "text"), whole_number(line, one.get("answer_start"), "answer_start"))
        for one in (object_of(line, one, "answer") for one in marked)
    ]
    name = question.get("id")
    return Asked(
        line,
        name if isinstance(name, str) else str(name or line.inside),
        text_of(line, question, "question"),
        [] if impossible else answers,
    )
