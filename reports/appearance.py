"""One visual language for page, notebook, tracker, terminal and docs: the colours, and the mark of each verdict.

A mark never differs by colour alone. The colours of lines and points are Okabe & Ito's palette, which stays
distinguishable with red-green colour blindness; those of text have a contrast of at least 4.5 (WCAG 2.2, AA) on both
backgrounds.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Role = Literal["ink", "faint", "better", "worse"]
"""A colour that follows the page's light or dark mode, by what it is for."""

LIGHT = {
    "ink": "#1b1e23",
    "soft": "#565d68",
    "faint": "#878e98",
    "line": "#d9dde3",
    "paper": "#ffffff",
    "panel": "#f5f6f8",
    "link": "#0b5c96",
    "mark": "#ffe9a8",
    "mark-edge": "#8a6100",
    "better": "#005a92",
    "worse": "#a44600",
}
DARK = {
    "ink": "#e7e9ec",
    "soft": "#a9b0ba",
    "faint": "#7b828d",
    "line": "#363b43",
    "paper": "#16181c",
    "panel": "#1f2227",
    "link": "#7cc4f5",
    "mark": "#574a12",
    "mark-edge": "#f0c64a",
    "better": "#6fc0f2",
    "worse": "#ff9a5c",
}

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Colours of trials, in the order of their importance; each has a dash and a shape of its own."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
SHAPES = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++", "--")
"""Fillings of the bars of evidence outcomes."""


class Look(NamedTuple):
    """How a verdict looks: its mark in text, the same shape in a figure (matplotlib's name), and its colour."""

    mark: str
    shape: str
    role: Role


VERDICTS: Mapping[str, Look] = {
    "better": Look("▲", "^", "better"),
    "worse": Look("▼", "v", "worse"),
    "cannot tell": Look("●", "o", "ink"),
    "baseline": Look("■", "s", "ink"),
    "fine": Look("◆", "D", "better"),
}
"""Of a comparison, and of the regression gate (`fine`: as good as the baseline)."""


def marked(verdict: str) -> str:
    """Return a verdict with its mark.

    >>> marked("better"), marked("cannot tell")
    ('▲ better', '● cannot tell')
    """
    return f"{VERDICTS[verdict].mark} {verdict}" if verdict in VERDICTS else verdict


def _heat(colours: Mapping[str, str]) -> dict[str, str]:
    """Shades of a cell by the tenth in which its fraction is: the colour of links, at most 28 % opaque."""
    return {f"heat{tenth}": f"{colours['link']}{round(0.031 * tenth * 255):02x}" for tenth in range(1, 10)}


def css() -> str:
    """Return the colours as variables of a style sheet, for light and dark mode."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in (one | _heat(one)).items()) for one in (LIGHT, DARK)
    )
    return f":root{{color-scheme:light dark;{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
