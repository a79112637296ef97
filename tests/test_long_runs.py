"""Functions that read untrusted text take linear time, even for long runs of one character."""

import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.components.augmenters import Heading
from harness.components.augmenters.writing import checked_context, excerpt
from harness.components.chunkers import Fixed, Markdown, Paragraph, Recursive, Sentence
from harness.components.retrievers.database_searches import said
from harness.components.retrievers.ensemble import _sentences
from harness.components.retrievers.intent import expected, has_form
from harness.components.selectors.similarity import word_set
from harness.core.characters import in_one_line, visible
from harness.core.errors import HarnessError
from harness.core.records import Document, Returned, TokenMap
from harness.core.secrecy import redact
from harness.core.text_files import Line
from harness.core.tokenizer import Tokenizer
from harness.data.checks.words import words
from harness.data.corpus import HeldDocuments
from harness.data.documents.extracted import of_markdown
from harness.data.documents.markdown import of_markdown_file
from harness.data.documents.restructured_text import _DIRECTIVE, _ROLE
from harness.data.importers.query_table import _LIKELY
from harness.data.importers.questions import _text
from harness.data.importers.trec import _bare, _document
from harness.data.location import locate
from harness.data.passage_search import snippets
from harness.data.quotes import loose_occurrences
from harness.experiment.metric_specs import metrics_of
from harness.experiment.tags import checked_tags
from harness.experiment.yaml_lines import _line
from harness.llm import Choice, defused, folded, suspicious
from harness.llm.answer_schema import AnswerSchema
from harness.llm.transport import _beyond_a_minute, _parameter, retry_after, safe
from harness.storage.bucket import _reason
from judges.support import containment, numbers_kept

LENGTH = 20_000
UNITS = [
    *(
        "\n",
        " ",
        "\t",
        "\r",
        "\r\n",
        "\u00a0",
        "\u200b",
        "\x00",
        "<",
        "< ",
        "<<",
        ">",
        "«",
        "＜",
        "```\n",
        "```json ",
        "`",
    ),
    *(
        "a",
        "A",
        "1",
        "1.",
        "a ",
        "a.",
        "a-",
        "0",
        ",",
        ".",
        ". ",
        "?",
        "#",
        "# ",
        "# a ",
        "#\n",
        "* ",
        "- a\n",
        "[",
        "](",
        "|",
    ),
    *(
        "<a ",
        '<a x="" ',
        '<a b="',
        "</a",
        "<text>",
        "<docno>",
        "<title>a",
        "&",
        "&amp;",
        "&#",
        "%41",
        "\\u0041",
        "\\",
        '"',
    ),
    *(
        "{",
        '{"a":',
        "[1,",
        "</think>",
        "<think>",
        "sk-",
        "sk-a",
        "***",
        "x",
        "limit 1 ",
        "requested ",
        "temperature ",
        "'",
    ),
    *(
        "ignore ",
        "grade 3 ",
        "give grade ",
        "this passage ",
        "忽略",
        "i g n o r e ",
        "one two ",
        "e\u0301",
        "é",
        "😀",
        "ab day",
    ),
]


def document(text: str) -> Document:
    return Document("d", text, tokens=TokenMap(Tokenizer("words").starts(text)))


def form(text: str) -> object:
    return AnswerSchema((("grade", Choice((0, 1))),)).read(text, ["c01"])


def chunk(chunker: object) -> Callable[[str], object]:
    return lambda text: chunker.split(document(text))  # type: ignore[attr-defined]


def trec(text: str) -> object:
    return _document(Line(Path("f"), 1), f"<docno>1</docno>{text}")


READERS: dict[str, Callable[[str], object]] = {
    "visible": visible,
    "a passage of another system": lambda text: locate(
        [Returned(f"{text[:-40]}q"), Returned(text[40:])], HeldDocuments([Document("d", f"{text}k{text}")])
    ),
    "in one line": in_one_line,
    "defused": defused,
    "suspicious": suspicious.__wrapped__,
    "folded": folded.__wrapped__,
    "an answer": form,
    "an answer in a fence": lambda text: form(f"```json\n{text}\n```"),
    "a server's words": safe,
    "a refused parameter": lambda text: _parameter("", f"unsupported {text}"),
    "tokens per minute": _beyond_a_minute,
    "retry-after": lambda text: retry_after(None, text.replace("\n", " "), 0.0),
    "redacted": redact,
    "an object store's words": lambda text: _reason(ValueError(text)),
    "a database's words": lambda text: said(ValueError(text)),
    "a quote": lambda text: loose_occurrences(text, f"{text[:5000]} end"),
    "a context": lambda text: checked_context(text, text, 0.8),
    "an excerpt": lambda text: excerpt(Document("d", text), 5, 9, 4000),
    "headings": lambda text: Heading().augment(Document("d", text), [(0, 5)]),
    "fixed": chunk(Fixed(50)),
    "recursive": chunk(Recursive(50)),
    "paragraph": chunk(Paragraph(50)),
    "sentence": chunk(Sentence(50)),
    "markdown": chunk(Markdown(50)),
    "stretches": lambda text: list(snippets(Document("d", text), 300)),
    "words": words,
    "word set": word_set,
    "sentences": _sentences.__wrapped__,
    "a question's form": expected,
    **{
        f"a sentence's form, {kind}": (lambda text, kind=kind: has_form(text, kind))
        for kind in ("duration", "time", "way")
    },
    "place and person": lambda text: has_form(text, "place") or has_form(text, "person"),
    "numbers": lambda text: numbers_kept(text, text),
    "containment": lambda text: containment(text, text),
    "markup": _bare,
    "a document of TREC's": trec,
    "tokens": lambda text: Tokenizer("o200k_base").count(text),
    "a Markdown file": of_markdown_file,
    "a heading": lambda text: of_markdown(f"# {text}"),
    "directives and roles": lambda text: (list(_DIRECTIVE.finditer(text)), list(_ROLE.finditer(text))),
    "a question file": lambda text: _text(Line(Path("f"), 1), f"---\n{text}"),
    "a column's name": lambda text: _LIKELY.search(text[-80:]),
    "an experiment's fault": lambda text: _line(Path(__file__), f"test_long_runs.py: {text}"),
    "a tag": lambda text: checked_tags({text: "x"}, "x"),
    "a metric's name": lambda text: metrics_of([text], (), where="metrics", own_where="own", base_dir=Path()),
}


@pytest.mark.parametrize("name", READERS)
def test_long_runs_are_read_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 characters of each kind, alone and before a letter: quadratic time would exceed the limit tenfold."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-Abcdefgh12345678aaaa")
    read = READERS[name]
    for unit in UNITS:
        for text in (unit * (LENGTH // len(unit)), unit * (LENGTH // len(unit)) + "z"):
            begun = time.process_time()
            with contextlib.suppress(HarnessError):
                read(text)
            took = time.process_time() - begun
            assert took < 3, f"{took:.1f} s for {len(text)} characters of {unit!r}"


KNOWN = {
    "harness/storage/bucket.py",
    "harness/components/retrievers/database_searches.py",
    "harness/components/text_analysis.py",
    "harness/components/augmenters/heading.py",
    "harness/components/augmenters/questions.py",
    "harness/components/augmenters/writing.py",
    "harness/core/characters.py",
    "harness/data/checks/words.py",
    "harness/components/chunkers/markdown.py",
    "harness/components/chunkers/packing.py",
    "harness/components/chunkers/paragraph.py",
    "harness/cli/data_evidence.py",
    "harness/components/component.py",
    "harness/data/write.py",
    "harness/data/quotes.py",
    "harness/data/raw_records.py",
    "harness/components/embedders/hashing.py",
    "harness/components/embedders/model_prompts.py",
    "harness/running/stages/embeddings.py",
    "harness/data/passage_search.py",
    "harness/storage/files.py",
    "harness/data/importers/contract_nli.py",
    "harness/data/importers/huggingface.py",
    "harness/data/importers/trec.py",
    "harness/llm/untrusted_text.py",
    "harness/llm/steering.py",
    "harness/llm/transport.py",
    "harness/data/annotation.py",
    "harness/evaluation/metrics/names.py",
    "harness/experiment/metric_specs.py",
    "harness/components/retrievers/ensemble.py",
    "harness/components/retrievers/intent.py",
    "harness/cli/scaffold/documents/my_chunkers.py",
    "harness/cli/scaffold/workshop/my_chunkers.py",
    "harness/data/documents/extracted.py",
    "harness/data/documents/html.py",
    "harness/data/documents/restructured_text.py",
    "harness/data/importers/query_table.py",
    "harness/experiment/tags.py",
    "harness/experiment/yaml_lines.py",
    "harness/core/secrecy.py",
    "harness/components/selectors/similarity.py",
    "harness/components/selectors/wording.py",
    "harness/core/strict_yaml.py",
    "harness/data/synthesis/prompts.py",
    "harness/core/tokenizer.py",
    "harness/experiment/yaml_file.py",
    "judges/support.py",
    "reports/page/figures/drawing.py",
}


def test_every_pattern_is_read_by_something_here() -> None:
    """The modules with regular expressions are listed, so that a new pattern is tested here."""
    root = Path(__file__).parents[1]
    found = {
        str(path.relative_to(root))
        for package in ("harness", "judges", "reports")
        for path in (root / package).rglob("*.py")
        if re.search(r"\bre\.(compile|sub|search|match|split|findall|finditer|fullmatch)\(", path.read_text())
    }
    assert found == KNOWN, "add the function that reads untrusted text to READERS, then the module to KNOWN"
