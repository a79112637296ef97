"""Data sets of the Hugging Face Hub, downloaded or in a folder: Parquet, Arrow, CSV and JSON files read as tables."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from harness.core.columnar import SUFFIXES, columnar_rows
from harness.core.errors import ConfigError, DataError
from harness.core.plurals import plural
from harness.core.text_files import COMPRESSED, Line, bare_name
from harness.data.importers import hotpotqa, squad
from harness.data.importers.beir import add_documents, read_queries
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.fields import id_of, list_of, object_of, text_of, whole_number
from harness.data.importers.judgments import Asked, Judged, note_judgment, write_judged
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source
from harness.data.importers.tables import import_tables

_CONVERTED = "refs/convert/parquet"
"""The revision where the Hub keeps every data set converted to Parquet."""
_FORMS = ("parquet", "arrow", "csv", "tsv", "jsonl", "json")
_LEFT_OUT = ("dataset_info.json", "dataset_dict.json", "state.json", "dataset_infos.json")
_SHARD = re.compile(r"(?:-\d+-of-\d+|^\d+)$")
_QREL = ({"query-id", "corpus-id"}, {"query_id", "corpus_id"}, {"qid", "docid"})


class Table(NamedTuple):
    """Files with the same columns: one split of one configuration; `split` is "" if it has no name."""

    name: str
    split: str
    files: list[Path]


def located(source: Path | str) -> Path:
    """The path itself if it exists; else the data set of that name, from the Hub or its cache.

    Raises DataError if it is not available, ConfigError if `huggingface_hub` is not installed.
    """
    if Path(source).exists():
        return Path(source)
    name = str(source)
    if name.count("/") != 1 or name.startswith((".", "/")):
        raise DataError(f"{name}: no such folder; data sets on the Hub have names like BeIR/scifact")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError, RevisionNotFoundError
    except ImportError:
        raise ConfigError("huggingface_hub is missing; pip install 'retrieval-harness[huggingface]'") from None
    patterns = [f"**/*.{form}" for form in _FORMS] + [f"*.{form}" for form in _FORMS]
    try:
        try:
            return Path(snapshot_download(name, repo_type="dataset", revision=_CONVERTED, allow_patterns=patterns))
        except (RevisionNotFoundError, LocalEntryNotFoundError):
            return Path(snapshot_download(name, repo_type="dataset", allow_patterns=patterns))
    except Exception as error:
        # The client raises errors of many types: no network, no such data set, no permission.
        text = " ".join(str(error).split())[:200]
        raise DataError(f"{name}: cannot be downloaded from the Hub: {type(error).__name__}: {text}") from None


def import_huggingface(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import tables that are recognized by their columns: BEIR and MTEB (corpus, queries, judgments), SQuAD, HotpotQA.

    Others need `--corpus`, `--queries` and `--map`. Splits become query sets. Raises DataError for unknown tables.
    """
    tables = list(_tables(source))
    if not tables:
        raise DataError(f"{source.path}: contains no file of type {', '.join(_FORMS)}")
    if options.corpus or options.columns:
        _by_columns(source, writer, options, tables)
        return
    if options.queries:
        raise ConfigError("--queries: needs --corpus; both are for tables that are not recognized by their columns")
    heads = [_head(source, table) for table in tables]
    for fits, write in _SHAPES:
        chosen = [table for table, head in zip(tables, heads, strict=True) if fits(head)]
        if chosen:
            write(source, writer, options, tables, chosen)
            return
    seen = "; ".join(f"{t.name}: {', '.join(head)[:60]}" for t, head in zip(tables[:3], heads, strict=False))
    raise DataError(
        f"{source.path}: not recognized by its columns ({seen}); describe them with --corpus, --queries and --map"
    )


def _tables(source: Source) -> Iterator[Table]:
    """The files, grouped by configuration and split."""
    found: dict[tuple[str, str], list[Path]] = {}
    paths = [source.path] if source.path.is_file() else sorted(p for p in source.folder.rglob("*") if p.is_file())
    for path in paths:
        form = bare_name(path).rpartition(".")[2]
        if path.suffix in COMPRESSED and form in _FORMS[:2]:
            raise DataError(f"{path}: is gzipped, which is not supported for {form} files; unpack it")
        if form in _FORMS and path.name not in _LEFT_OUT:
            stem = _SHARD.sub("", bare_name(path).removesuffix(f".{form}"))
            folder = path.parent.relative_to(source.folder).parts
            # Shards of one split are in a folder of its name, or have its name and a number.
            parts = [part for part in (*folder, stem) if part and part != "data"]
            found.setdefault(("/".join(parts), parts[-1] if parts else ""), []).append(path)
    for (name, split), files in found.items():
        yield Table(name or "data", split, files)


def _by_split(tables: list[Table], default: str) -> dict[str, Table]:
    """Tables by split. Raises DataError if two configurations have the same split."""
    found: dict[str, Table] = {}
    for table in tables:
        name = table.split or default
        if name in found:
            both = f"{found[name].name} and {table.name}"
            raise DataError(f"{table.files[0]}: {both} are both a split '{name}'; import the folder of one of them")
        found[name] = table
    return found


def _rows(source: Source, table: Table) -> Iterator[tuple[Line, Row]]:
    for path in table.files:
        if path.suffix in SUFFIXES:
            yield from columnar_rows(source.used_file(path))
        else:
            yield from source.rows(path)


def _head(source: Source, table: Table) -> set[str]:
    """The columns of a table, from its first row."""
    return set(next((row for _, row in _rows(source, table)), {}))


def _by_columns(source: Source, writer: DatasetWriter, options: Options, tables: list[Table]) -> None:
    named = {table.name: table for table in tables}

    def rows(name: str) -> Iterator[tuple[Line, Row]]:
        if name not in named:
            raise DataError(f"{source.path}: no table '{name}'; tables: {', '.join(named)}")
        return _rows(source, named[name])

    if not options.corpus or not options.queries:
        raise ConfigError(f"name the tables with --corpus and --queries; tables: {', '.join(named)}")
    queries = {name or options.name: rows(table) for name, table in options.queries.items()}
    import_tables(writer, options.columns, rows(options.corpus), queries, absent=options.absent)


def _retrieval(
    source: Source, writer: DatasetWriter, options: Options, tables: list[Table], judging: list[Table]
) -> None:
    """Import tables of documents, queries and judgments."""
    documents = [table for table in tables if "corpus" in table.name.split("/")]
    query_tables = [table for table in tables if "queries" in table.name.split("/")]
    if not documents or not query_tables:
        raise DataError(f"{source.path}: judgments in {judging[0].name}, but no table named corpus or queries")
    for table in documents:
        add_documents(writer, _rows(source, table))
    asked: dict[str, Asked] = {}
    for table in query_tables:
        read_queries(_rows(source, table), asked)
    for name, table in _by_split(judging, options.name).items():
        judged: dict[str, Judged] = {}
        for line, row in _rows(source, table):
            query, doc = (
                id_of(line, row, "query-id", "query_id", "qid"),
                id_of(line, row, "corpus-id", "corpus_id", "docid"),
            )
            grade = next((row[key] for key in ("score", "relevance", "label") if key in row), None)
            note_judgment(judged, writer, line, query, doc, whole_number(line, grade, "score"))
        write_judged(writer, name, asked, judged, table.files[0])


def _squad(source: Source, writer: DatasetWriter, options: Options, _: list[Table], chosen: list[Table]) -> None:
    sets = {}
    for name, table in _by_split(chosen, options.name).items():
        # Rows with one title form an article, also if not adjacent; without a title, rows with one context.
        articles: dict[str, list[tuple[Line, Row]]] = {}
        for line, row in _rows(source, table):
            articles.setdefault(row.get("title") or text_of(line, row, "context"), []).append((line, row))
        sets[name] = [_article(rows) for rows in articles.values()]
    squad.write_articles(writer, options.unit, sets)


def _article(rows: list[tuple[Line, Row]]) -> squad.Article:
    paragraphs: dict[str, squad.Paragraph] = {}
    for line, row in rows:
        text = text_of(line, row, "context")
        paragraph = paragraphs.setdefault(text, squad.Paragraph(line, text, []))
        marked = object_of(line, row.get("answers"), "answers")
        starts = [whole_number(line, at, "answer_start") for at in list_of(line, marked, "answer_start")]
        texts = [text if isinstance(text, str) else str(text) for text in list_of(line, marked, "text")]
        if len(texts) != len(starts):
            raise line.fault(f"answers: {plural(len(texts), 'text')} and {len(starts)} answer_start")
        answers = list(zip(texts, starts, strict=True))
        asked = squad.Asked(line, str(row.get("id")), text_of(line, row, "question"), answers)
        paragraph.questions.append(asked)
    line, first = rows[0]
    return squad.Article(line, text_of(line, first, "title", "") or "untitled", list(paragraphs.values()))


def _hotpotqa(source: Source, writer: DatasetWriter, options: Options, _: list[Table], chosen: list[Table]) -> None:
    tables = _by_split(chosen, options.name)
    sets = {name: [_multi_hop(line, row) for line, row in _rows(source, table)] for name, table in tables.items()}
    hotpotqa.write_questions(writer, sets)


def _multi_hop(line: Line, row: Row) -> hotpotqa.Asked:
    """The question of a row whose passages and facts are columns of lists."""
    context = object_of(line, row.get("context"), "context")
    facts = object_of(line, row.get("supporting_facts"), "supporting_facts")
    pairs = zip(list_of(line, context, "title"), list_of(line, context, "sentences"), strict=False)
    numbers = zip(list_of(line, facts, "title"), list_of(line, facts, "sent_id"), strict=False)
    written = {
        "_id": str(row.get("id")),
        "question": row.get("question"),
        "answer": row.get("answer") or "",
        "type": row.get("type") or "",
        "context": [list(pair) for pair in pairs],
        "supporting_facts": [list(pair) for pair in numbers],
    }
    return hotpotqa.read_question(line, written)


Shape = Callable[[Source, DatasetWriter, Options, list[Table], list[Table]], None]

_SHAPES: tuple[tuple[Callable[[set[str]], bool], Shape], ...] = (
    (lambda head: any(names <= head for names in _QREL), _retrieval),
    (lambda head: {"context", "question", "answers"} <= head, _squad),
    (lambda head: {"context", "question", "supporting_facts"} <= head, _hotpotqa),
)
"""A test of the columns for each kind of table, and the function that imports it."""
