"""Files as text: what is kept of each kind, where headings and pages begin, and what is refused."""

import io
import zipfile
from pathlib import Path

import pytest

from harness.core.errors import ConfigError, DataError
from harness.data.documents import Extracted, extracted, place_in
from harness.data.documents import reading as module


@pytest.fixture
def read(tmp_path: Path) -> object:
    def made(name: str, content: str | bytes) -> Extracted:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        found = extracted(path)
        for start, _, text in found.headings:
            line = found.text[start:].splitlines()[0]
            assert text in line.replace("`", "").replace("*", ""), (text, line)
        return found

    return made


def test_markdown_stays_as_it_is(read: object) -> None:
    """But for front matter, which becomes metadata; a `#` in code is no heading."""
    body = "# Use *it*\n\nText.\n\n```sh\n# no heading\n```\n\n## Install `x`\n\nMore.\n"
    found = read("a.md", f"---\ntitle: Guide\nauthor: Ada\ntags: [a]\n---\n{body}")  # type: ignore[operator]
    assert found.text == body
    assert (found.title, found.metadata) == ("Guide", {"format": "markdown", "author": "Ada"})
    assert [tuple(heading) for heading in found.headings] == [(0, 1, "Use it"), (body.index("## "), 2, "Install x")]
    assert read("b.md", body).title == "Use it"  # type: ignore[operator]
    assert read("c.md", "---\nno yaml: [\n---\nText").text.startswith("---")  # type: ignore[operator]


def test_html_without_navigation(read: object) -> None:
    """The main content: headings, lists, tables and code; no menus, scripts, permalinks and images."""
    page = """<html><head><title>Site - Page</title><script>x()</script></head><body>
    <nav>Menu</nav><header>Top</header>
    <main><header><h1>Page<a class="headerlink" href="#p">¶</a></h1></header>
    <p>See <a href="/x">the guide</a>.<img src="a.png" alt="picture"></p>
    <ul><li>one</li><li>two</li></ul><pre>code  here</pre>
    <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
    <h2>More</h2><p>caf&eacute;</p></main><footer>Bottom</footer></body></html>"""
    found = read("a.html", page)  # type: ignore[operator]
    assert found.title == "Page"
    assert [heading.text for heading in found.headings] == ["Page", "More"]
    for kept in ("See the guide.", "- one\n- two", "code  here", "| a | b |", "café"):
        assert kept in found.text
    for lost in ("Menu", "Top", "Bottom", "x()", "picture", "¶", "/x"):
        assert lost not in found.text


def test_html_declares_its_encoding(read: object) -> None:
    """As browsers read it."""
    page = '<html><head><meta charset="latin-1"><title>t</title></head><body><p>Käse</p></body></html>'
    assert "Käse" in read("a.html", page.encode("latin-1")).text  # type: ignore[operator]


def test_restructured_text(read: object) -> None:
    """Sections, code, known and unknown directives and roles; tables of contents and included files are left out."""
    text = """\
Guide
=====

Use :func:`~pkg.mod.run` and :ref:`the reference <ref>`, see `home <http://h>`_.

.. toctree::

   secret

.. include:: /etc/passwd

.. note:: Mind *this*.

.. versionadded:: 2.0
   With options.

.. confval:: speed
   :type: int

   How fast.

.. code-block:: python

   run()  # it

Install
-------

====  ====
a     b
====  ====
1     2
====  ====
"""
    found = read("a.rst", text)  # type: ignore[operator]
    assert found.title == "Guide"
    assert [(heading.level, heading.text) for heading in found.headings] == [(1, "Guide"), (2, "Install")]
    for kept in ("Use run and the reference, see home.", "Mind *this*", "Added in version 2.0", "With options.",
                 "speed", "How fast.", "run()  # it", "| a | b |"):  # fmt: skip
        assert kept in found.text, kept
    for lost in ("secret", "root:", "toctree", "System Message"):
        assert lost not in found.text, lost


def pdf_of(*pages: str, title: str = "", outline: tuple[tuple[str, int], ...] = ()) -> bytes:
    """A PDF with a line of text on each page."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject({NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1"),
                                 NameObject("/BaseFont"): NameObject("/Helvetica")})  # fmt: skip
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): writer._add_object(font)})}
        )
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    for name, page_number in outline:
        writer.add_outline_item(name, page_number)
    writer.add_metadata({"/Title": title})
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def test_pdf(read: object) -> None:
    """Pages, their offsets, the outline and the title."""
    found = read("a.pdf", pdf_of("First page.", "Install here.", title="Manual", outline=(("Install", 1),)))  # type: ignore[operator]
    assert found.text == "First page.\n\nInstall here."
    assert (found.title, list(found.pages)) == ("Manual", [0, 13])
    assert [tuple(heading) for heading in found.headings] == [(13, 1, "Install")]
    assert place_in(found.record(), 5) == "page 1"
    assert place_in(found.record(), 20) == "page 2, Install"


def test_metadata_of_other_forms() -> None:
    """A user's own `pages` or `headings` say nothing about places."""
    assert place_in({"pages": "12-14", "headings": ["Intro"]}, 5) == ""
    assert place_in({"pages": ["a"], "headings": [[0, "x", 1]]}, 5) == ""


def test_word(read: object, tmp_path: Path) -> None:
    """Headings, paragraphs and lists of a file that Word could open."""
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p>'
    body = f"{heading}<w:p><w:r><w:t>Some </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>text</w:t></w:r></w:p>"
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    styles = f"<w:styles {space}>{style}</w:styles>"
    kinds = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/word/document.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("[Content_Types].xml", kinds)
        link = f'<Relationship Id="r1" Type="{office}/officeDocument" Target="word/document.xml"/>'
        archive.writestr("_rels/.rels", relations.format(link))
        link = f'<Relationship Id="r2" Type="{office}/styles" Target="styles.xml"/>'
        archive.writestr("word/_rels/document.xml.rels", relations.format(link))
        archive.writestr("word/styles.xml", styles)
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
    found = read("a.docx", made.getvalue())  # type: ignore[operator]
    assert (found.text, found.title) == ("# Title\n\nSome **text**\n", "Title")


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.pdf", b"no pdf", "is not a readable PDF"),
        ("a.docx", b"no zip", "is not a Word file"),
        ("a.md", b"\xff\xfe", "not UTF-8 (byte 0); name its --encoding"),
        ("a.txt", b"caf\xe9", "not UTF-8 (byte 3)"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    """One line with the file, and how to leave it out."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        extracted(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}: {what}")
    assert "--exclude" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_protected_pdf(tmp_path: Path) -> None:
    """It says so."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(io.BytesIO(pdf_of("Secret."))))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(DataError, match="is protected by a password"):
        extracted(tmp_path / "a.pdf")


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the file is opened."""
    (tmp_path / "a.pdf").write_bytes(b"")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _: None)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"a\.pdf: pypdf is missing.*pip install 'retrieval-harness\[documents\]'"):
        extracted(tmp_path / "a.pdf")
