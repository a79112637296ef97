"""Matplotlib figures as inline SVG in the page's own colours, for light and dark mode, with tooltips."""

import io
import re
import zlib
from html import escape
from typing import Any

INK, FAINT = "#010203", "#040506"
"""Placeholders for the page's colours of text and of faint lines; `Drawing.svg` replaces them."""


class Drawing:
    """A matplotlib figure with its axes and the tooltips of its elements; `width` and `height` in inches."""

    def __init__(self, width: float, height: float, *, rows: int = 1, columns: int = 1, **shared: Any) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(self.figure)
        self.figure.patch.set_alpha(0)
        self._titles: dict[str, str] = {}
        self.axes = self.figure.subplots(rows, columns, squeeze=False, **shared).ravel()
        for axes in self.axes:
            axes.patch.set_alpha(0)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["bottom", "left"]].set_color(FAINT)
            axes.tick_params(colors=INK, labelsize=9)
            axes.xaxis.label.set_color(INK)
            axes.yaxis.label.set_color(INK)

    def say(self, artist: Any, text: str) -> None:
        """Sets the tooltip of an artist."""
        gid = f"say{len(self._titles)}"
        artist.set_gid(gid)
        self._titles[gid] = text

    def svg(self, label: str) -> str:
        """Returns the figure as inline SVG; `label` is its description for screen readers."""
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
        text = text[text.index("<svg") :].replace(INK, "currentColor").replace(FAINT, "var(--faint)")
        text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r"'?DejaVu Sans'?", "'DejaVu Sans', Verdana, sans-serif", text)
        for gid, title in self._titles.items():
            text = text.replace(f'<g id="{gid}">', f"<g><title>{escape(title)}</title>", 1)
        return _with_own_ids(text, label, self.figure.get_figwidth())


def _with_own_ids(text: str, label: str, width: float) -> str:
    """The SVG with a label, sized by the window, with ids that no other figure of the page uses."""
    prefix = f"f{zlib.crc32(label.encode()):x}-"
    text = re.sub(r'(\bid="|url\(#|href="#)', lambda found: found[0] + prefix, text)
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening, count=2)
    return f'{opening} role="img" aria-label="{escape(label)}" style="max-width:{width:.1f}in">{rest}'


def standalone(svg: str) -> str:
    """Returns an inline SVG as the content of a separate file, on a white background."""
    style = "color:#1b1e23;--faint:#9aa1ab;background:#fff;"
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg.replace('style="', f'style="{style}', 1)
