"""Blocks that fit stay whole; longer ones are cut at their structure."""

import pytest

from harness.components.chunkers import Markdown
from harness.core.records import Document, TokenMap
from harness.core.tokenizer import Tokenizer

WORDS = Tokenizer("words")


def cut(text: str, size: int) -> list[str]:
    doc = Document("d", text, tokens=TokenMap(WORDS.starts(text)))
    return [text[start:end] for start, end in Markdown(size).split(doc)]


SECTIONS = "# Bread\n\nFlour and water.\n\n## Crust\n\nHot oven.\n\n## Crumb\n\nLong rise.\n\n# Soup\n\nSlow heat."


def test_a_document_that_fits_is_not_cut() -> None:
    """24 tokens."""
    assert cut(SECTIONS, 40) == [SECTIONS]


def test_cut_before_the_highest_headings() -> None:
    """Two first-level sections; the first has 17 tokens."""
    assert cut(SECTIONS, 22) == [SECTIONS[: SECTIONS.index("\n\n# Soup")], "# Soup\n\nSlow heat."]


def test_then_before_lower_ones_and_small_neighbours_are_joined() -> None:
    """Each has 6 tokens: with size 12 the first section is cut at its subheadings, and the first two parts fit."""
    assert cut(SECTIONS, 12) == [
        "# Bread\n\nFlour and water.\n\n## Crust\n\nHot oven.",
        "## Crumb\n\nLong rise.",
        "# Soup\n\nSlow heat.",
    ]


def test_a_heading_stays_with_what_follows() -> None:
    """Even if there is no text between two headings, and if the block after it must be cut."""
    text = "# A\n\n## B\n\n" + "one two three four five six seven eight nine ten."
    parts = cut(text, 8)
    assert parts[0].startswith("# A\n\n## B\n\none")
    assert all(WORDS.count(part) <= 8 for part in parts)


def test_lists_tables_and_code_stay_whole() -> None:
    """Each block fits; two do not fit together."""
    blocks = ["- one a\n- two b\n- three c", "| h | i |\n|---|---|\n| 1 | 2 |", "```py\n# no heading\nx = 1\n```"]
    size = max(map(WORDS.count, blocks))
    assert cut("\n\n".join(blocks), size) == blocks


@pytest.mark.parametrize(
    ("block", "parts"),
    [
        ("- one a b\n- two c\n  - deep d\n- three e f", ["- one a b", "- two c\n  - deep d", "- three e f"]),
        (
            "| h | i |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
            ["| h | i |\n|---|---|", "| 1 | 2 |\n| 3 | 4 |"],
        ),
    ],
)
def test_long_blocks_are_cut_between_items_and_rows(block: str, parts: list[str]) -> None:
    """A nested list stays with its item; a table header stays with its delimiter row."""
    size = max(map(WORDS.count, parts))
    assert cut(block, size) == parts


def test_code_is_cut_between_lines() -> None:
    """A line too long for a chunk is cut like `recursive` does."""
    text = "```\na = 1\nb = 2\nc = 3\n```"
    assert all(part.strip("`\n").count("=") <= 2 for part in cut(text, 10))
    assert all("\n".join(cut(text, 10)).count(line) == 1 for line in ("a = 1", "b = 2", "c = 3"))


def test_line_ends_of_all_kinds() -> None:
    """Carriage returns do not move an offset."""
    text = "# A\r\n\r\none two\r\n\r\n# B\r\n\r\nthree four"
    assert cut(text, 5) == ["# A\r\n\r\none two", "# B\r\n\r\nthree four"]


def test_a_hash_in_code_is_not_a_heading() -> None:
    """A `#` without a space after it is not a heading either."""
    text = "```\n# comment\n```\n\n#hashtag\n\n# Real\n\ntext"
    assert cut(text, WORDS.count("```\n# comment\n```\n\n#hashtag"))[1] == "# Real\n\ntext"
