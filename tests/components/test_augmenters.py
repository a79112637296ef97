"""Heading paths."""

from harness.components.augmenters import Heading
from harness.core.records import Document

TEXT = """# Bread
intro
## Dough
### Kneading
fold
```
# not a heading
```
still kneading
## Baking
hot
"""


def test_the_path_above_each_chunk() -> None:
    """The title comes first and only once; a heading closes deeper ones; fenced code contains no headings."""
    doc = Document("d", TEXT, "Bread")
    at = [TEXT.index(word) for word in ("intro", "fold", "still", "hot")]
    assert Heading().augment(doc, [(start, start + 1) for start in at]) == [
        "Bread",
        "Bread > Dough > Kneading",
        "Bread > Dough > Kneading",
        "Bread > Baking",
    ]


def test_a_title_that_is_not_a_heading_comes_first() -> None:
    """A document without title and headings has no context."""
    assert Heading(" / ").augment(Document("d", TEXT, "Book"), [(8, 9)]) == ["Book / Bread"]
    assert Heading().augment(Document("d", "plain"), [(0, 5)]) == [""]


def test_characters_that_are_not_markup() -> None:
    """`C#` keeps its `#`: closing number signs need a space before them. An inline code span opens no code block."""
    text = "# Learn C#\n```inline```\n## Two ##\nbody"
    assert Heading().augment(Document("d", text), [(len(text) - 1, len(text))]) == ["Learn C# > Two"]
