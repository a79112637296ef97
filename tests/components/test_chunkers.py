"""Each chunker on texts small enough to check by hand; tokens are words."""

from pathlib import Path

import pytest

from harness.components.chunkers import Fixed, LangChain, Paragraph, Recursive, Sentence
from harness.components.roles import Chunker
from harness.core.records import Document, TokenMap
from harness.core.tokenizer import Tokenizer
from harness.data.dataset import load_dataset

ROOT = Path(__file__).parents[2]


def pieces(chunker: Chunker, text: str) -> list[str]:
    doc = Document("d", text, tokens=TokenMap(Tokenizer("words").starts(text)))
    return [text[start:end] for start, end in chunker.split(doc) if text[start:end].strip()]


def test_fixed_by_tokens() -> None:
    """Two words per chunk; the white space before a word belongs to the previous chunk."""
    assert pieces(Fixed(2), "a b c d e") == ["a b ", "c d ", "e"]


def test_fixed_overlap_adds_no_contained_last_chunk() -> None:
    """Windows of 3 with a step of 1 over 4 words: two chunks, and no third chunk contained in the second."""
    assert pieces(Fixed(3, 2), "a b c d") == ["a b c ", "b c d"]


def test_fixed_by_characters() -> None:
    """Characters need no tokens."""
    assert pieces(Fixed(4, 1, "characters"), "abcdefgh") == ["abcd", "defg", "gh"]


def test_sentences_are_packed_up_to_the_size() -> None:
    """Punctuation marks are tokens: 'Rub in butter.' has 4. Two such sentences fit 8."""
    text = "Rub in butter. Add cold water. Chill it well."
    assert pieces(Sentence(8), text) == ["Rub in butter. Add cold water.", "Chill it well."]


def test_sentences_overlap_by_whole_sentences() -> None:
    """Four tokens of overlap are one sentence of four."""
    text = "Rub in butter. Add cold water. Chill it well."
    assert pieces(Sentence(8, 4), text) == ["Rub in butter. Add cold water.", "Add cold water. Chill it well."]


def test_an_over_long_sentence_is_cut_not_dropped() -> None:
    """There is no empty chunk."""
    assert pieces(Sentence(3), "one two three four five. Six.") == ["one two three", "four five.", "Six."]


def test_abbreviations_do_not_end_sentences() -> None:
    """Punkt knows 'Dr.'."""
    assert pieces(Sentence(6), "Ask Dr. Oats first. Then stir it.") == ["Ask Dr. Oats first.", "Then stir it."]


def test_paragraphs_between_any_blank_lines() -> None:
    """CRLF, several blank lines, lines that contain only white space."""
    assert pieces(Paragraph(), "a\r\n\r\nb b\nstill b\n \t\n\n\nc\n") == ["a", "b b\nstill b", "c"]


def test_paragraphs_packed_and_cut() -> None:
    """'a' and 'b c' fit 3; 'd e f g' does not and is cut."""
    assert pieces(Paragraph(3), "a\n\nb c\n\nd e f g") == ["a\n\nb c", "d e f", "g"]


def test_recursive_prefers_paragraphs_then_lines_then_words() -> None:
    """Only what is too long is split further."""
    text = "a b\n\nc d e\nf g h i j"
    assert pieces(Recursive(3), text) == ["a b", "c d e", "f g h", "i j"]


def test_recursive_merges_small_neighbours() -> None:
    """Lines of one word are merged up to the size."""
    assert pieces(Recursive(2, separators=("\n",)), "a\nb\nc\nd\ne") == ["a\nb", "c\nd", "e"]


def test_recursive_keeps_runs_of_separators_together() -> None:
    """Three newlines are one boundary."""
    assert pieces(Recursive(1, separators=("\n",)), "a\n\n\nb") == ["a", "b"]


@pytest.mark.parametrize("chunker", [Fixed, Sentence, Recursive])
def test_overlap_must_be_smaller_than_size(chunker: type[Fixed]) -> None:
    """Otherwise a window would never move on."""
    assert "smaller than size" in str(chunker(10, 10).problem())


def test_a_separator_ends_a_piece_or_begins_the_next() -> None:
    """As with LangChain's `keep_separator`; no text is lost either way."""
    text = "One two. Three four? Five"
    ends = Recursive(3, separators=(".", "?"))
    starts = Recursive(3, separators=(".", "?"), keep_separator="start")
    assert pieces(ends, text) == ["One two.", "Three four?", "Five"]
    assert pieces(starts, text) == ["One two", ". Three four", "? Five"]


def test_langchain_cuts_at_the_same_places() -> None:
    """With the same separators and lengths, for both values of `keep_separator`, on the first cookbook documents."""
    documents = load_dataset(ROOT / "datasets" / "cookbook", "validation").documents[:12]
    separators = ("\n\n", "\n", ". ", " ")
    for keep in ("end", "start"):
        options = {"chunk_size": 40, "chunk_overlap": 0, "separators": list(separators), "keep_separator": keep}
        reference = LangChain(options=options, length_function="words")
        recursive = Recursive(40, separators=separators, keep_separator=keep)  # type: ignore[arg-type]
        same = total = 0
        for doc in documents:
            mapped = Document(doc.id, doc.text, tokens=TokenMap(Tokenizer("words").starts(doc.text)))
            found = set(recursive.split(mapped))
            wanted = reference.split(mapped)
            same += sum(span in found for span in wanted)
            total += len(wanted)
        assert same / total > 0.95, keep
