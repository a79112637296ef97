"""Matplotlib figures as inline SVG in the page's own colours, whose elements know their trial and their values."""

import io
import re
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

from reports.appearance import LIGHT, Role

WIDE, NARROW = 7.2, 3.9
"""Widths of figures in inches: for a column of the page, and for a phone."""

_LARGEST = {True: 1.4, False: 1.1}
"""How much a figure grows with its column, for a wide one and for a phone's."""

_PLACEHOLDERS: dict[Role, str] = {"ink": "#010203", "faint": "#040506", "better": "#070809", "worse": "#0a0b0c"}
INK, FAINT = _PLACEHOLDERS["ink"], _PLACEHOLDERS["faint"]
"""Placeholders for the page's colours of text and of faint lines; `Drawing.svg` replaces them."""


def colour_of(role: Role) -> str:
    """Return the placeholder of one of the page's colours."""
    return _PLACEHOLDERS[role]


def trial_key(name: str) -> str:
    """Return the mark by which the page finds everything that belongs to a trial."""
    return f"{zlib.crc32(name.encode()):x}"


class Drawing:
    """A matplotlib figure with its axes, and what the page shows of its elements; `width` and `height` in inches."""

    def __init__(self, width: float, height: float, *, rows: int = 1, columns: int = 1, **shared: Any) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.narrow = width < WIDE
        self.figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(self.figure)
        self.figure.patch.set_alpha(0)
        self._known: dict[str, tuple[str, str]] = {}
        self.axes = self.figure.subplots(rows, columns, squeeze=False, **shared).ravel()
        for axes in self.axes:
            axes.patch.set_alpha(0)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["bottom", "left"]].set_color(FAINT)
            axes.tick_params(colors=INK, labelsize=9)
            axes.xaxis.label.set_color(INK)
            axes.yaxis.label.set_color(INK)

    def say(self, artist: Any, text: str = "", trial: str = "") -> None:
        """Set what the pointer reads on an artist, and the trial to which it belongs."""
        gid = f"say{len(self._known)}"
        artist.set_gid(gid)
        self._known[gid] = text, trial

    def name_rows(self, axes: Any, names: Sequence[str], trials: Sequence[str] = ()) -> None:
        """Name horizontal rows: at their left, or above them in a narrow figure; `trials` are those they belong to."""
        if self.narrow:
            axes.set_yticks([])
            shared = {"transform": axes.get_yaxis_transform(), "fontsize": 8.5, "color": INK, "va": "bottom"}
            labels = [axes.text(0, at - 0.24, name, **shared) for at, name in enumerate(names)]
            axes.set_ylim(len(names) - 0.55, -0.85)
        else:
            axes.set_yticks(range(len(names)), names, fontsize=8.5, color=INK)
            axes.set_ylim(len(names) - 0.5, -0.5)
            labels = axes.get_yticklabels()
        for label, trial in zip(labels, trials, strict=False):
            self.say(label, trial=trial)

    def svg(self, label: str) -> str:
        """Return the figure as inline SVG; `label` is its description for screen readers."""
        import matplotlib

        for axes in self.axes:
            for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts):
                if text.get_color() in ("black", "k"):
                    text.set_color(INK)
        out = io.StringIO()
        settings = {"svg.fonttype": "none", "svg.hashsalt": label, "font.family": "DejaVu Sans"}
        with matplotlib.rc_context(settings):
            self.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        text = text[text.index("<svg") :]
        for role, colour in _PLACEHOLDERS.items():
            text = text.replace(colour, "currentColor" if role == "ink" else f"var(--{role})")
        text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r"'?DejaVu Sans'?", "'DejaVu Sans', Verdana, sans-serif", text)
        text = re.sub(r'<g id="(say\d+)">', lambda found: self._opening(found[1]), text)
        return _with_own_ids(text, label, self.figure.get_figwidth())

    def _opening(self, gid: str) -> str:
        """The group of an element: its trial as an attribute, its text as a title for browsers without scripts."""
        text, trial = self._known[gid]
        attribute = f' data-trial="{trial_key(trial)}"' if trial else ""
        return f"<g{attribute}><title>{escape(text)}</title>" if text else f"<g{attribute}>"


def _with_own_ids(text: str, label: str, width: float) -> str:
    """The SVG with a label, sized by the window, with ids that no other figure of the page uses."""
    prefix = f"f{zlib.crc32(f'{label} {width}'.encode()):x}-"
    text = re.sub(r'(\bid="|url\(#|href="#)', lambda found: found[0] + prefix, text)
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening, count=2)
    largest = _LARGEST[width >= WIDE] * width
    return f'{opening} role="img" aria-label="{escape(label)}" style="max-width:{largest:.1f}in">{rest}'


def standalone(svg: str) -> str:
    """Return an inline SVG as the content of a separate file, on a white background."""
    colours = "".join(f"--{role}:{LIGHT[role]};" for role in _PLACEHOLDERS)
    style = f"color:{LIGHT['ink']};{colours}background:{LIGHT['paper']};"
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg.replace('style="', f'style="{style}', 1)


def short(text: str, most: int = 52) -> str:
    """Return printable text of bounded length; `$` is escaped, since matplotlib sets formulas between dollar signs."""
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(char if char.isprintable() else "�" for char in shown).replace("$", r"\$")
