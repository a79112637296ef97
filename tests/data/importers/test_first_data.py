"""Importers for one's own documents and questions: folders, exports of other tools, corpora with nested chunks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ConfigError, DataError
from harness.data.dataset import Dataset, load_dataset, read_corpus
from harness.data.importers import Options, import_dataset
from harness.data.manifest import read_manifest

GUIDE = "# Guide\n\nFiles that match a pattern are left out. Kilns fire at noon.\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Three documents in a folder, and files that are none."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "_build").mkdir()
    (folder / ".git").mkdir()
    (folder / "guide.md").write_text(GUIDE)
    (folder / "sub/kiln.txt").write_text("The north kiln is in Leeds. It is old.")
    (folder / "sub/page.html").write_text("<h1>Page</h1><p>Glaze melts.</p>")
    (folder / "empty.md").write_text(" \n")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "_build/copy.md").write_text("copy")
    (folder / ".git/note.md").write_text("note")
    return folder


def imported(kind: str, source: Path | str, tmp_path: Path, **options: Any) -> Dataset:
    import_dataset(kind, source, tmp_path / "made", options=Options(**options))
    return load_dataset(tmp_path / "made", next(iter(read_manifest(tmp_path / "made").queries)))


def quotes(data: Dataset) -> dict[str, list[str]]:
    """The text of the first place of each item of evidence, by query."""
    return {
        query.id: [
            data.by_id[item.places[0].doc].text[item.places[0].start : item.places[0].end] for item in query.evidence
        ]
        for query in data.query_set.queries
    }


def test_a_folder_of_documents(docs: Path, tmp_path: Path) -> None:
    """Ids are paths; other files, empty ones and folders of tools are left out and counted; there are no queries."""
    counts = import_dataset("text", docs, tmp_path / "made")
    manifest = read_manifest(tmp_path / "made")
    found = {doc.id: doc for doc in read_corpus(manifest)}
    assert list(found) == ["guide.md", "sub/kiln.txt", "sub/page.html"]
    assert found["guide.md"].text == GUIDE
    assert found["guide.md"].metadata == {"format": "markdown", "headings": [[0, 1, "Guide"]]}
    assert found["sub/page.html"].title == "Page"
    assert not manifest.queries
    assert counts == {
        "documents": 3,
        "files of other kinds left out: .png": 1,
        "files without text left out: empty.md": 1,
    }


def test_excluded_files(docs: Path, tmp_path: Path) -> None:
    """By a pattern of the path."""
    import_dataset("text", docs, tmp_path / "made", options=Options(exclude=("*.html", "sub/k*")))
    assert [doc.id for doc in read_corpus(read_manifest(tmp_path / "made"))] == ["guide.md"]


def test_a_folder_without_documents(tmp_path: Path) -> None:
    """One line that lists the known kinds; nothing is left."""
    (tmp_path / "none").mkdir()
    (tmp_path / "none/a.png").touch()
    with pytest.raises(DataError, match=r"none: contains no file of a known kind; known are \.md, "):
        import_dataset("text", tmp_path / "none", tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_question_files(docs: Path, tmp_path: Path) -> None:
    """A text with YAML at its beginning, JSON lists, YAML, and a table; offsets are found from the quotes."""
    folder = tmp_path / "questions"
    folder.mkdir()
    (folder / "left-out.md").write_text(
        "---\nanswer: By a pattern.\nevidence:\n"
        "  - {doc: guide.md, quote: Files that match a pattern are left out.}\n---\n"
        "How are files left out?\n"
    )
    (folder / "more.json").write_text(
        json.dumps(
            [{"id": "when", "question": "When?", "evidence": [{"quote": "Kilns fire at noon."}], "type": "fact"}]
        )
    )
    (folder / "one.yaml").write_text(
        "question: Where is the kiln?\ndoc: sub/kiln.txt\nquote: The north kiln is in Leeds.\n"
    )
    (folder / "table.csv").write_text("id,question,doc,quote\nt1,What melts?,sub/page.html,Glaze melts.\n")
    data = imported("questions", folder, tmp_path, corpus=str(docs))
    assert quotes(data) == {
        "left-out": ["Files that match a pattern are left out."],
        "when": ["Kilns fire at noon."],
        "one": ["The north kiln is in Leeds."],
        "t1": ["Glaze melts."],
    }
    assert data.query_set.queries[0].answer == "By a pattern."
    assert data.query_set.queries[1].metadata["type"] == "fact"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.md", "---\n- x\n---\nWhy?", "the YAML at the beginning is no mapping"),
        ("a.yaml", "question: [", "not valid YAML"),
        ("a.json", "[3]", r"a\.json: \[0\]: expected a question with its parts"),
        ("a.json", '{"question": "?", "evidence": [{"doc": "nowhere.md", "quote": "x"}]}', "no document 'nowhere.md'"),
        (
            "a.json",
            '{"question": "?", "evidence": [{"doc": "guide.md", "quote": "absent"}]}',
            "'absent' does not occur in",
        ),
    ],
)
def test_mistakes_in_question_files(docs: Path, tmp_path: Path, name: str, content: str, what: str) -> None:
    """The file, and what is wrong."""
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / name).write_text(content)
    with pytest.raises(DataError, match=what) as caught:
        imported("questions", tmp_path / "q", tmp_path, corpus=str(docs))
    assert name in str(caught.value)


def test_questions_about_a_data_set(docs: Path, tmp_path: Path) -> None:
    """The documents of a data set can be used again; without documents, a line says what is needed."""
    import_dataset("text", docs, tmp_path / "first")
    (tmp_path / "q.jsonl").write_text('{"id": "q", "question": "When?", "quote": "Kilns fire at noon."}\n')
    assert quotes(imported("questions", tmp_path / "q.jsonl", tmp_path, corpus=str(tmp_path / "first"))) == {
        "q": ["Kilns fire at noon."]
    }
    with pytest.raises(DataError, match="name the documents with --corpus: a folder, a table, or a data set"):
        import_dataset("questions", tmp_path / "q.jsonl", tmp_path / "other")
    with pytest.raises(DataError, match="--corpus nowhere: no such file or folder"):
        import_dataset("questions", tmp_path / "q.jsonl", tmp_path / "other", options=Options(corpus="nowhere"))


EXAMPLE = {
    "dataset_id": "419a",
    "id": "574-a",
    "inputs": {"question": "When do kilns fire?"},
    "outputs": {"answer": "At noon.", "cited_chunks": ["Kilns fire at noon."], "retrieved_chunks": ["It is old."]},
    "metadata": {"dataset_split": ["base"], "level": 2},
    "created_at": "2026-03-01T09:00:00Z",
    "modified_at": None,
}
CITED: Mapping[str, str] = {"evidence.quote": "outputs.cited_chunks"}


@pytest.mark.parametrize("form", ["list", "lines", "envelope"])
def test_langsmith(docs: Path, tmp_path: Path, form: str) -> None:
    """Examples as JSON or JSON lines. Evidence is used only if its column is named, but the import says so."""
    content = {"list": [EXAMPLE], "lines": EXAMPLE, "envelope": {"version": 1, "examples": [EXAMPLE]}}[form]
    path = tmp_path / f"export.{'jsonl' if form == 'lines' else 'json'}"
    path.write_text(json.dumps(content) + "\n")
    data = imported("langsmith", path, tmp_path, corpus=str(docs), columns=CITED)
    (query,) = data.query_set.queries
    assert (query.id, query.text, query.answer) == ("574-a", "When do kilns fire?", "At noon.")
    assert quotes(data) == {"574-a": ["Kilns fire at noon."]}
    assert query.metadata["metadata.level"] == 2
    counts = import_dataset("langsmith", path, tmp_path / "other", options=Options(corpus=str(docs)))
    assert counts["validation queries without evidence"] == 1
    assert any("'outputs.cited_chunks', which looks like evidence" in what for what in counts)


def test_langsmith_csv(docs: Path, tmp_path: Path) -> None:
    """Columns with prefixes; the only input is the question."""
    path = tmp_path / "dataset.csv"
    path.write_text(
        'input_input,output_output\nWhen?,At noon.\n"[{""role"": ""user"", ""content"": ""Where?""}]",Leeds.\n'
    )
    data = imported("langsmith", path, tmp_path, corpus=str(docs))
    assert [query.answer for query in data.query_set.queries] == ["At noon.", "Leeds."]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "new.csv",
            "id,node_id,input.question,output.answer,metadata.ref,splits\n"
            'e1,RG==,When?,At noon.,Kilns fire at noon.,"[""a""]"\n',
        ),
        (
            "old.csv",
            "example_id,input_question,output_answer,metadata.ref\ne1,When?,At noon.,\"['Kilns fire at noon.']\"\n",
        ),
        (
            "new.jsonl",
            json.dumps(
                {
                    "id": "e1",
                    "node_id": "RG==",
                    "input": {"question": "When?"},
                    "output": {"answer": "At noon."},
                    "metadata": {"ref": "Kilns fire at noon."},
                    "splits": [],
                }
            ),
        ),
    ],
)
def test_phoenix(docs: Path, tmp_path: Path, name: str, content: str) -> None:
    """CSV of now and before, and JSON lines; a list may be written by Python."""
    (tmp_path / name).write_text(content)
    columns = {"evidence.quote": "metadata.ref"}
    data = imported("phoenix", tmp_path / name, tmp_path, corpus=str(docs), columns=columns)
    assert [(query.id, query.text, query.answer) for query in data.query_set.queries] == [("e1", "When?", "At noon.")]
    assert quotes(data) == {"e1": ["Kilns fire at noon."]}


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"context.span_id": "1", "attributes.input.value": "?"}, "are spans: what an application retrieved"),
        ({"messages": [{"role": "user", "content": "?"}], "ideal": "x"}, "is an export for fine-tuning"),
        ({"inputs": {"a": "?", "b": "?"}, "outputs": {}}, "no column for the question; name it with --map query.text"),
    ],
)
def test_exports_that_are_no_data_set(docs: Path, tmp_path: Path, record: dict[str, Any], what: str) -> None:
    """They would give wrong evidence or none."""
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    with pytest.raises(DataError, match=what):
        imported("phoenix", tmp_path / "x.jsonl", tmp_path, corpus=str(docs))


def test_nested_chunks(tmp_path: Path) -> None:
    """Gold chunks, by document and number or by id, become spans; chunks may overlap, and white space may differ."""
    content = "One two three.\n\nFour  five six. Seven."
    document = {
        "doc_id": "doc_1",
        "original_uuid": "ab12",
        "content": content,
        "chunks": [
            {"chunk_id": "doc_1_chunk_0", "original_index": 0, "content": "One two three."},
            {"chunk_id": "doc_1_chunk_1", "original_index": 1, "content": "three.\n\nFour five six."},
            {"chunk_id": "doc_1_chunk_2", "original_index": 2, "content": "six. Seven."},
        ],
    }
    (tmp_path / "src").mkdir()
    (tmp_path / "src/chunks.json").write_text(json.dumps([document]))
    (tmp_path / "src/evaluation.jsonl").write_text(
        json.dumps({"query": "Four?", "answer": "five", "golden_chunk_uuids": [["ab12", 1], ["ab12", 2]]})
        + "\n"
        + json.dumps({"query": "One?", "golden_chunk_uuids": ["doc_1_chunk_0"]})
    )
    data = imported("nested-chunks", tmp_path / "src", tmp_path)
    assert quotes(data) == {"q1": ["three.\n\nFour  five six.", "six. Seven."], "q2": ["One two three."]}
    (tmp_path / "src/evaluation.jsonl").write_text('{"query": "?", "golden_chunk_uuids": [["ab12", 7]]}\n')
    with pytest.raises(
        DataError, match=r'evaluation\.jsonl:1: golden_chunk_uuids: no chunk \["ab12", 7\] in the corpus'
    ):
        import_dataset("nested-chunks", tmp_path / "src", tmp_path / "other")


def paragraph(title: str, text: str, *, needed: bool = False) -> dict[str, Any]:
    return {"idx": 0, "title": title, "paragraph_text": text, "is_supporting": needed}


def test_musique(tmp_path: Path) -> None:
    """Paragraphs are pooled; the unanswerable form of a question has no evidence and no answer."""
    shared = {
        "question": "Who founded the maker?",
        "answer": "Page",
        "question_decomposition": [],
        "answer_aliases": [],
    }
    maker, founder, other = ("Pixel", "Made by Google."), ("Google", "Founded by Page."), ("Penguin", "A bird.")
    records = [
        {"id": "2hop__1_2", "paragraphs": [paragraph(*maker, needed=True), paragraph(*founder, needed=True)],
         "answerable": True, **shared},
        {"id": "2hop__1_2", "paragraphs": [paragraph(*maker, needed=True), paragraph(*other)],
         "answerable": False, **shared},
    ]  # fmt: skip
    (tmp_path / "musique_full.jsonl").write_text("\n".join(map(json.dumps, records)))
    data = imported("musique", tmp_path / "musique_full.jsonl", tmp_path)
    assert [doc.id for doc in data.documents] == ["Pixel", "Google", "Penguin"]
    first, second = data.query_set.queries
    assert [item.places[0].doc for item in first.evidence] == ["Pixel", "Google"]
    assert (first.answer, first.metadata["type"]) == ("Page", "2hop")
    assert (second.id, second.evidence, second.answer) == ("2hop__1_2-unanswerable", (), None)


def test_clapnq(tmp_path: Path) -> None:
    """Selected sentences become spans; a question without an answer has none, although it has a passage."""
    text = "The north kiln is in Leeds . It is old . "
    records = [
        {"id": "-64", "input": "where is it", "passages": [{"title": "Kiln", "text": text, "sentences": []}],
         "output": [{"answer": "In Leeds.", "selected_sentences": ["The north kiln is in Leeds ."], "meta": {}}]},
        {"id": "15", "input": "when was it sold", "passages": [{"title": "Kiln", "text": text, "sentences": []}],
         "output": [{"answer": "", "selected_sentences": [], "meta": {}}]},
    ]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, records)))
    data = imported("clap-nq", tmp_path / "x.jsonl", tmp_path)
    assert quotes(data) == {"-64": ["The north kiln is in Leeds ."], "15": []}


def test_clapnq_passages(tmp_path: Path) -> None:
    """A table of passages and tables of questions; cells may hold line breaks, answers are separated by `::`."""
    folder = tmp_path / "retrieval"
    folder.mkdir()
    (folder / "passages.tsv").write_text("id\ttext\ttitle\n8_1-9\tThe north kiln.\tKiln\n8_10-20\tOld.\tKiln\n")
    (folder / "question_dev_answerable.tsv").write_text(
        'id\tquestion\tdoc-id-list\tanswers\n-64\twhere is it\t8_1-9\t"In\nLeeds.::Leeds"\n15\twhen\t\t\n'
    )
    data = imported("clap-nq", folder, tmp_path)
    first, second = data.query_set.queries
    assert ([item.places[0].doc for item in first.evidence], first.answer) == (["8_1-9"], "In\nLeeds.")
    assert not second.evidence
    (folder / "passages.tsv").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match="is a pointer of Git LFS"):
        import_dataset("clap-nq", folder, tmp_path / "other")


def test_ir_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set of the catalog: grades, judgments of 0, and an id that is not there. Nothing is downloaded."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    import ir_datasets

    (tmp_path / "docs.tsv").write_text("d1\tThe north kiln.\nd2\tGlaze.\n")
    (tmp_path / "queries.tsv").write_text("q1\tkiln\nq2\tnothing judged\n")
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq1 0 d2 0\n")
    made = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    name = f"local/{tmp_path.name}"
    ir_datasets.registry.register(name, made)
    data = imported("ir-datasets", name, tmp_path)
    assert [doc.text for doc in data.documents] == ["The north kiln.", "Glaze."]
    (query,) = data.query_set.queries
    assert (query.evidence[0].places[0].doc, query.evidence[0].grade, query.irrelevant) == ("d1", 2.0, ("d2",))
    assert read_manifest(data.root).source == name
    with pytest.raises(DataError, match=f"{name}x: no data set of ir_datasets has this id. Did you mean '{name}'?"):
        import_dataset("ir-datasets", f"{name}x", tmp_path / "other")


def test_the_test_set_of_a_benchmark_stays_open(tmp_path: Path) -> None:
    """Published figures are measured on it; one's own is locked; --test-set chooses."""
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "a", "text": "?"}\n{"_id": "b", "text": "??"}\n')
    for name, query in (("dev", "a"), ("test", "b")):
        (tmp_path / f"qrels/{name}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{query}\td\t1\n")
    tables = {"queries": {"validation": "v.jsonl", "test": "t.jsonl"}, "corpus": "corpus.csv"}
    (tmp_path / "corpus.csv").write_text("id,text\nd,x\n")
    for name in "vt":
        (tmp_path / f"{name}.jsonl").write_text('{"id": "a", "question": "?", "doc": "d"}\n')
    cases: list[tuple[str, dict[str, Any], bool]] = [
        ("beir", {}, False),
        ("beir", {"test_set": "locked"}, True),
        ("jsonl", tables, True),
        ("jsonl", {**tables, "test_set": "open"}, False),
    ]
    for at, (kind, options, locked) in enumerate(cases):
        import_dataset(kind, tmp_path, tmp_path / f"made{at}", options=Options(**options))
        assert read_manifest(tmp_path / f"made{at}").queries["test"].locked is locked


def test_an_option_that_a_format_does_not_use(docs: Path, tmp_path: Path) -> None:
    """It would be ignored in silence."""
    with pytest.raises(ConfigError, match="import text does not use --map"):
        import_dataset("text", docs, tmp_path / "made", options=Options(columns={"query.text": "x"}))
