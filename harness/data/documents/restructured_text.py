"""reStructuredText files as Markdown. Directives and roles that docutils does not know keep their text."""

import re
from typing import Any, ClassVar

from harness.data.documents.extracted import Extracted, of_markdown
from harness.data.documents.html import as_markdown

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]{1,200}\|[ \t]+)?(?P<name>[\w:.+-]{1,80})::", re.MULTILINE)
_ROLE = re.compile(r":(?P<name>[a-zA-Z][\w:.+-]{0,80}):`")

_WITHOUT_TEXT = frozenset(
    (
        *("toctree", "index", "contents", "sectnum", "meta", "highlight", "module", "currentmodule", "default-role"),
        *("image", "figure", "include", "literalinclude", "raw", "tabularcolumns", "rst-class"),
        *("only", "ifconfig", "sectionauthor", "codeauthor"),
    )
)
"""Directives whose content is no text of the document."""

_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
"""The words before the argument of a directive, which without them would say nothing."""

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 6,
    "doctitle_xform": False,
    "syntax_highlight": "none",
    "input_encoding": "unicode",
    "line_length_limit": 1_000_000,
    "initial_header_level": 1,
}


def of_restructured_text(text: str) -> Extracted:
    """Return a reStructuredText document as Markdown."""
    from bs4 import BeautifulSoup
    from docutils.core import publish_parts

    _register(text)
    body = publish_parts(text, writer="html5", settings_overrides=_SETTINGS)["html_body"]
    page = BeautifulSoup(body, "html.parser")
    for part in page.select(".system-message, .docutils.problematic"):
        part.decompose()
    return of_markdown(as_markdown(page), metadata={"format": "restructuredtext"})


def _register(text: str) -> None:
    """Register the directives and roles of a text that docutils does not know: others define them, such as Sphinx."""
    from docutils.parsers.rst import directives, languages, roles
    from docutils.utils import new_document

    document, english = new_document("text"), languages.get_language("en")
    for name in {match["name"].lower() for match in _DIRECTIVE.finditer(text)}:
        if name in _WITHOUT_TEXT or directives.directive(name, english, document)[0] is None:
            directives.register_directive(name, _directive(with_text=name not in _WITHOUT_TEXT))
    for name in {match["name"].lower() for match in _ROLE.finditer(text)}:
        if roles.role(name, english, 0, document.reporter)[0] is None:
            roles.register_canonical_role(name, _role)


def _directive(*, with_text: bool) -> Any:
    """A directive that keeps its argument as a paragraph and its content, or neither."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives

    class AnyOption(dict[str, Any]):
        """Accepts every option as text."""

        def __missing__(self, name: str) -> Any:
            return directives.unchanged

        def __bool__(self) -> bool:
            return True

    class Unknown(Directive):  # type: ignore[misc]
        """A directive that docutils does not know."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec: ClassVar[Any] = AnyOption()

        def run(self) -> list[Any]:
            """Return the nodes of the argument and the content."""
            if not with_text:
                return []
            made = nodes.container()
            for argument in self.arguments:
                said = " ".join(filter(None, (_VERSIONS.get(self.name, ""), argument)))
                parts, _ = self.state.inline_text(said, self.lineno)
                made += nodes.paragraph("", "", *parts)
            self.state.nested_parse(self.content, self.content_offset, made)
            return list(made.children)

    return Unknown


def _role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> tuple[list[Any], list[Any]]:
    """The text of an unknown role: `:ref:`the guide <guide>`` is "the guide"; of code, the last part of `~a.b.c`."""
    from docutils import nodes

    target = text.rfind("<") if text.endswith(">") else -1
    shown = text[: max(0, target)].rstrip() or text
    shown = shown.rpartition(".")[2] if shown.startswith("~") else shown.lstrip("!")
    return [nodes.literal(rawtext, shown) if name.startswith(("py:", "c:")) else nodes.inline(rawtext, shown)], []
