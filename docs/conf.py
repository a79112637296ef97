"""How the site is built: `sphinx-build -W docs site`. It needs no network."""

import os
import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Retrieval harness"
extensions = ["myst_parser"]
nitpicky = True  # an unresolved reference is a warning, and -W makes it an error

myst_heading_anchors = 4  # the anchors GitHub gives to headings, so file.md#anchor works on both

html_theme = "sphinxawesome_theme"
html_title = project
html_permalinks_icon = "#"
highlight_language = "text"  # of blocks without a language, which show output
pygments_style = "friendly"
pygments_style_dark = "github-dark"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

_ROOT = Path(__file__).resolve().parent.parent
_COPIED = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}  # pages whose text is outside docs/
_BROWSE = os.environ.get("DOCS_SOURCE_URL", "").rstrip("/")  # such as https://example.org/team/harness/blob/main
_FENCED = re.compile(r"(^```.*?^```[ ]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]*)\]\((?P<path>(?![a-z]+:|[#/])[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def _resolve_links(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrites links that leave docs/: to the page with the text, else to the repository, else to the words alone."""
    origin = _COPIED.get(docname, f"docs/{docname}.md")
    if docname in _COPIED:
        source[0] = (_ROOT / origin).read_text(encoding="utf-8")
    pages = {path: f"{page}.md" for page, path in _COPIED.items()}

    def rewritten(link: re.Match[str]) -> str:
        words, anchor = link["words"], link["anchor"] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link["path"]))
        if path in pages or path.startswith("docs/"):
            target = pages.get(path, path.removeprefix("docs/"))
            return f"[{words}]({posixpath.relpath(target, posixpath.dirname(docname) or '.')}{anchor})"
        if not (_ROOT / path).exists():
            return link[0]  # broken: MyST warns
        return f"[{words}]({_BROWSE}/{path}{anchor})" if _BROWSE else words

    parts = _FENCED.split(source[0])
    source[0] = "".join(part if part.startswith("```") else _LINK.sub(rewritten, part) for part in parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the rewriting of links."""
    app.connect("source-read", _resolve_links)
    return {"parallel_read_safe": True}
