"""Splitters from other libraries: exact offsets, or an error."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.components.chunkers import Chonkie, LangChain, LlamaIndex
from harness.components.chunkers.alignment import aligned
from harness.components.roles import Chunker
from harness.core.errors import ConfigError
from harness.core.records import Document
from harness.data.dataset import load_dataset

ROOT = Path(__file__).parents[2]
CASES: list[Chunker] = [
    LangChain(options={"chunk_size": 300, "chunk_overlap": 0}),
    LangChain(options={"chunk_size": 300, "chunk_overlap": 60}),
    LangChain(options={"chunk_size": 60, "chunk_overlap": 0}, length_function="cl100k_base"),
    LangChain("TokenTextSplitter", {"chunk_size": 60, "chunk_overlap": 0, "encoding_name": "cl100k_base"}),
    LangChain("CharacterTextSplitter", {"chunk_size": 400, "chunk_overlap": 0, "separator": "\n\n"}),
    LangChain("MarkdownTextSplitter", {"chunk_size": 400, "chunk_overlap": 0}),
    LlamaIndex(options={"chunk_size": 120, "chunk_overlap": 0}),
    LlamaIndex(options={"chunk_size": 120, "chunk_overlap": 30}),
    LlamaIndex("TokenTextSplitter", {"chunk_size": 100, "chunk_overlap": 0}),
    Chonkie(options={"chunk_size": 300}),
    Chonkie("SentenceChunker", {"chunk_size": 300}),
    Chonkie("TokenChunker", {"chunk_size": 300, "chunk_overlap": 50}),
]


@pytest.mark.parametrize("chunker", CASES, ids=repr)
def test_offsets_on_the_cookbook(chunker: Chunker) -> None:
    """On all 48 documents, including Korean, Hindi and emoji: chunks are in order and no text is lost."""
    for doc in load_dataset(ROOT / "datasets" / "cookbook", "validation").documents:
        spans = chunker.split(doc)
        assert [start for start, _ in spans] == sorted(start for start, _ in spans)
        covered: set[int] = set()
        for start, end in spans:
            assert 0 <= start < end <= len(doc.text)
            covered |= set(range(start, end))
        lost = "".join(char for at, char in enumerate(doc.text) if at not in covered and not char.isspace())
        assert lost == ""


def test_lengths_in_tokens() -> None:
    """Lengths are in words: four words per chunk. An unknown tokenizer name gets the usual error message."""
    doc = Document("d", "one two three four five six seven eight nine ten")
    split = LangChain(options={"chunk_size": 4, "chunk_overlap": 0}, length_function="words").split(doc)
    assert [doc.text[a:b] for a, b in split] == ["one two three four", "five six seven eight", "nine ten"]
    plain = LangChain(options={"chunk_size": 9, "chunk_overlap": 0}, length_function="characters").split(doc)
    assert max(b - a for a, b in plain) <= 9
    output = LangChain(options={"length_function": "len"}).problem()
    assert output == "options.length_function: is not an option but a setting; write `length_function: cl100k_base`"
    with pytest.raises(ConfigError, match="no tokenizer named 'wrods'. Did you mean 'words'"):
        LangChain(length_function="wrods").split(doc)


def test_bundled_ranks_are_found_in_every_process() -> None:
    """A splitter that uses tiktoken finds them offline, even if the harness itself has not used it (warm store)."""
    code = (
        "from harness.components.chunkers import LangChain\nfrom harness.core.records import Document\n"
        "made = LangChain('TokenTextSplitter', {'encoding_name': 'o200k_base', 'chunk_size': 3, 'chunk_overlap': 0})\n"
        "print(len(made.split(Document('d', 'one two three four five six'))))"
    )
    bare = {name: value for name, value in os.environ.items() if name != "TIKTOKEN_CACHE_DIR"}
    offline = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env={**bare, **offline}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr


def test_repetitive_text() -> None:
    """Forty equal paragraphs: each piece is aligned with its own copy, not with the first one."""
    paragraph = "The same words again and again, in every paragraph of this text."
    doc = Document("d", "\n\n".join([paragraph] * 40))
    spans = LangChain(options={"chunk_size": 80, "chunk_overlap": 0}).split(doc)
    assert [start for start, _ in spans] == [at * (len(paragraph) + 2) for at in range(40)]


def test_alignment_of_pieces() -> None:
    """Pieces separated by white space, overlapping pieces, and a missing separator."""
    text = "one two three -- four five"
    assert aligned(text, ["one two", "three -- four five"], "x") == [(0, 7), (8, 26)]
    assert aligned(text, ["one two three", "three -- four", "four five"], "x") == [(0, 13), (8, 21), (17, 26)]
    assert aligned(text, ["one two three", "four five"], "x") == [(0, 13), (17, 26)]
    assert aligned(text, ["one  two\nthree --four", "", "five"], "x") == [(0, 21), (22, 26)]
    assert aligned("", [], "x") == []


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("one two three", ["one two", "three!"], "x: piece 2 'three!' is not next in the document"),
        ("one two three", ["ONE two", "three"], "x: piece 1 'ONEtwo' is not next"),
        ("one two three", ["three", "one two"], "is not next"),
        ("ab ab ab ab ab c", ["ab ab ab", "ab ab ab", "c"], "x: piece 1 'ababab' could be in two places"),
        ("z a-sep a b", ["z", "a", "b"], "x: piece 2 'a' could be in two places"),
        ("a" + " word" * 50, ["a"], "x: the end of the text is in no piece"),
        ("a" + " word" * 50 + " z", ["a", "z"], "is not next"),
    ],
)
def test_alignment_errors(text: str, pieces: list[str], expected: str) -> None:
    """Changed text, changed order, an ambiguous overlap, missing text."""
    with pytest.raises(ConfigError, match=expected):
        aligned(text, pieces, "x")


@pytest.mark.parametrize(
    ("chunker", "expected"),
    [
        (LangChain("RecursiveSplitter"), "langchain_text_splitters has no splitter 'RecursiveSplitter'. Did you mean"),
        (LangChain(options={"size": 3}), "chunker langchain: RecursiveCharacterTextSplitter: .*size"),
        (LlamaIndex("SentenceSpliter"), "llama_index.core.node_parser has no splitter 'SentenceSpliter'"),
        (Chonkie("TokenChunker", {"chunk_size": -1}), "chunker chonkie: TokenChunker: "),
        (LangChain("MarkdownHeaderTextSplitter", {"headers_to_split_on": []}), "expected pieces of text, got Document"),
        (LlamaIndex("MarkdownNodeParser"), "chunker llama_index: MarkdownNodeParser: AttributeError"),
    ],
)
def test_splitters_that_cannot_be_built(chunker: Any, expected: str) -> None:
    """The error is one line that names the class or the option."""
    with pytest.raises(ConfigError, match=expected):
        chunker.split(Document("d", "Some text."))
