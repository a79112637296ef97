"""The page as people use it: pointer, keys, links, filters, narrow and wide windows, light and dark; by real boxes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from chromium import window
from page_checks import accessibility_faults, layout_faults

from harness import Launch, compare
from reports.appearance import marked

WINDOWS = [(width, scheme) for width in (390, 1440, 1920) for scheme in ("light", "dark")]


def until(browser: Any, script: str, *arguments: Any) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(script, *arguments))


def choose(browser: Any, label: str, text: str, within: str = "") -> None:
    """Choose an option of the control with this label."""
    script = """
    const label = [...document.querySelectorAll(arguments[2] + " .controls label")]
      .find((one) => one.textContent.trim().startsWith(arguments[0]));
    const select = label.querySelector("select");
    select.value = [...select.options].find((one) => one.textContent === arguments[1]).value;
    for (const event of ["input", "change"]) select.dispatchEvent(new Event(event, { bubbles: true }));
    """
    browser.execute_script(script, label, text, within)


def test_no_text_is_cut_off_or_covered(shown: Any) -> None:
    """On a phone and two screens: no text is clipped, outside its figure, or over another; nothing scrolls sideways."""
    for width, scheme in WINDOWS:
        window(shown, width, scheme)
        assert layout_faults(shown) == [], (width, scheme)
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert shown.execute_script(wide) == 0, (width, scheme)
        points = (
            "return [...document.querySelectorAll('#comparison .figure')].filter((one) => one.checkVisibility()).length"
        )
        assert shown.execute_script(points) == 1  # a figure of its own for a phone, whose points need no scrolling


def test_the_layout_test_finds_faults(shown: Any) -> None:
    """Text cut off by its box, and texts of a figure over each other, are found."""
    shown.execute_script(
        "const p = document.querySelector('#answer'); p.style.width = '40px'; p.style.whiteSpace = 'nowrap';"
        "const [one, two] = document.querySelectorAll('.figure.wide text');"
        "two.parentElement.append(one.cloneNode(true), one.cloneNode(true));"
    )
    found = {fault[0] for fault in layout_faults(shown)}
    assert {"clipped", "overlap"} <= found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(shown: Any, scheme: str) -> None:
    """axe-core finds no violation of WCAG 2 A and AA, contrast included, also with everything unfolded."""
    window(shown, 1440, scheme)
    assert accessibility_faults(shown) == []


def test_figures_answer_to_the_pointer_and_to_keys(shown: Any, launch: Launch) -> None:
    """A point shows its values, and its trial is highlighted in every figure and table; arrow keys reach all points."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    window(shown, 1440)
    row = next(row for row in compare(launch).rows if not row.is_baseline)
    says = f"{row.name}: {row.difference:+.3f} ({row.difference_low:+.3f} … {row.difference_high:+.3f}), {row.verdict}"
    points = shown.find_elements("css selector", "#comparison .figure.wide [data-say]")
    (point,) = [one for one in points if one.get_attribute("data-say") == says]
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(shown).move_to_element(point).perform()
    assert shown.find_element("id", "tip").text == says
    lit = "return [...document.querySelectorAll('section:has(.lit)')].map((one) => one.id)"
    assert {"comparison", "budget", "cost", "losses", "judges"} <= set(shown.execute_script(lit))
    rows = "return [...document.querySelectorAll('#comparison tr.lit')].map((row) => row.cells[0].textContent)"
    assert shown.execute_script(rows) == [row.name]
    figure = shown.find_element("css selector", "#budget .figure.wide")
    figure.send_keys(Keys.ARROW_DOWN)
    first = shown.find_element("id", "tip").text
    figure.send_keys(Keys.ARROW_DOWN)
    assert first != shown.find_element("id", "tip").text != ""
    figure.send_keys(Keys.ENTER)
    assert shown.execute_script("return document.querySelectorAll('tr.lit').length") > 0
    figure.send_keys(Keys.ESCAPE)
    assert shown.execute_script("return document.querySelectorAll('.lit').length") == 0


def test_the_table_filters_groups_and_hides_columns(shown: Any, launch: Launch) -> None:
    """By factors of the grid and by text; the order by a column stays within groups."""
    names = "return [...document.querySelectorAll('#comparison tr[data-trial]')].map((row) => row.cells[0].textContent)"
    heads = "return [...document.querySelectorAll('#comparison tr.dtrg-group')].map((row) => row.textContent)"
    every = {result.name for result in launch.results}
    choose(shown, "retriever", "bm25", "#comparison")
    assert set(shown.execute_script(names)) == {name for name in every if "bm25" in name}
    choose(shown, "retriever", "all", "#comparison")
    choose(shown, "group by", "retriever", "#comparison")
    assert shown.execute_script(heads) == ["retriever: bm25 · 2 trials", "retriever: dense · 2 trials"]
    assert len(shown.execute_script(names)) == len(every)
    choose(shown, "group by", "verdict", "#comparison")
    verdicts = [marked(row.verdict) for row in compare(launch).rows]
    counted = {f"verdict: {one} · {verdicts.count(one)} trial{'s' * (verdicts.count(one) > 1)}" for one in verdicts}
    assert set(shown.execute_script(heads)) == counted
    choose(shown, "group by", "–", "#comparison")
    assert shown.execute_script(heads) == []
    shown.find_element("css selector", "#comparison input[type=search]").send_keys("recursive")
    assert set(shown.execute_script(names)) == {name for name in every if "recursive" in name}
    boxes = shown.find_elements("css selector", "#comparison .columns input")
    shown.execute_script("arguments[0].click()", boxes[0])
    visible = "return [...document.querySelectorAll('#comparison thead th')].map((one) => one.textContent)"
    assert "mean" not in shown.execute_script(visible)


def test_only_queries_that_differ_and_a_link_to_one(shown: Any, launch: Launch) -> None:
    """The filter keeps what the scores say; the address leads to the same query, trials and filter in a new window."""
    names = [result.name for result in launch.results]
    choose(shown, "trial B", names[3])
    choose(shown, "queries", "where A and B differ")
    shown_now = "return [...document.querySelectorAll('#queries tr')].map((row) => row.cells[3].textContent)"
    differences = shown.execute_script(shown_now)
    metric = compare(launch).metric
    chosen = [
        shown.execute_script(f"return document.getElementById('{id}').selectedOptions[0].textContent") for id in "ab"
    ]
    one, two = ({r.name: r for r in launch.results}[name].scores[metric] for name in chosen)
    assert len(differences) == sum(abs(x - y) > 1e-9 for x, y in zip(one, two, strict=True))
    assert "+0.000" not in differences
    shown.execute_script("document.querySelectorAll('#queries button')[0].click()")
    until(shown, "return location.hash.includes('query=')")
    wanted, address = shown.execute_script("return [document.querySelector('#detail').dataset.query, location.href]")
    shown.get("about:blank")
    shown.get(address)
    until(shown, "return document.getElementById('explorer')?.dataset.ready === 'true'")
    assert shown.execute_script("return document.querySelector('#detail').dataset.query") == wanted
    assert shown.execute_script(shown_now) == differences
    assert shown.execute_script("return document.querySelector('#b').selectedOptions[0].textContent") == names[3]


def test_search_in_passages(shown: Any) -> None:
    """A text that is in no query finds the queries whose passages have it; so does a regular expression."""
    shown.find_element("id", "filter").send_keys("holds hyssop beans")
    assert shown.find_element("id", "count").text == "no matching query"
    shown.find_element("id", "deep").click()
    until(shown, "return document.querySelectorAll('#queries tr').length > 0")
    until(
        shown,
        "document.querySelector('#queries button').click(); return document.querySelector('#detail').dataset.query",
    )
    assert "holds hyssop beans" in shown.execute_script("return document.querySelector('#detail').textContent")
    found = shown.find_element("id", "count").text
    shown.find_element("id", "filter").clear()
    shown.find_element("id", "filter").send_keys(r"/holds (hyssop|tarragon)\s+b/")
    until(shown, "return document.getElementById('count').textContent === arguments[0]", found)


def test_where_evidence_lies(shown: Any, launch: Launch) -> None:
    """The picture of the retrieval names, for each trial, the places and ranks of what it brought of a document."""
    buttons = "[...document.querySelectorAll('#queries button')]"
    shown.execute_script(f"{buttons}.find((one) => one.textContent.includes('cedar tower')).click()")
    until(shown, "return document.querySelector('#detail h3').textContent.includes('cedar tower')")
    drawn = "document.querySelectorAll('.retrieval > .tracks .track')"
    tracks = shown.execute_script(f"return [...{drawn}].map((one) => one.getAttribute('aria-label'))")
    assert tracks[0].startswith("evidence: ")
    assert launch.session is not None
    names = [result.name for result in launch.results]
    for trial in launch.session.trials:
        (row,) = (row for row in launch.session.outputs(trial).rows() if "cedar tower" in row["query"])
        own = [passage for passage in row["kept"] if passage["relevant"]]
        name = names[launch.session.trials.index(trial)]
        (label,) = [
            text for text in tracks if text.split(": ")[0].split(" · ", 1)[-1] == name or text.startswith(f"{name}: ")
        ]
        assert ("evidence" in label) == bool(own)
        for passage in own:
            assert f"{passage['start']}–{passage['end']}, rank" in label


def _markdown_script() -> str:
    """The page's functions for Markdown, which its own script keeps to itself."""
    folder = Path(__file__).parents[2] / "reports/page"
    files = ("vendor/markdown-it.min.js", "script/dom.js", "script/markdown.js")
    return "\n".join((folder / file).read_text(encoding="utf-8") for file in files)


def test_markdown_is_shown_as_such_and_inert(shown: Any) -> None:
    """Headings, lists, tables and code are shown as such, evidence marked; markup, links and images are only text."""
    text = (
        "# A title\n\n- one **bold**\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`code` "
        "<img src=x onerror='window.hacked=9'> [link](javascript:window.hacked=9) ![alt](http://127.0.0.1:9/x.png)\n"
    )
    start = text.index("one")
    made = shown.execute_script(
        f"{_markdown_script()}\nconst made = rendered({json.dumps(text)}, [[{start}, {start + 3}]]);"
        "document.body.append(made); const plain = looksLikeMarkdown('plain text, 5 * 3 and a_b_c');"
        "return [made.innerHTML, plain, made.textContent]"
    )
    assert '<p class="heading">A title</p>' in made[0]
    assert "<li><mark>one</mark> <strong>bold</strong></li>" in made[0]
    assert "<td>1</td>" in made[0]
    assert "<code>code</code>" in made[0]
    assert not any(tag in made[0] for tag in ("<a", "<img", "<script"))
    assert "onerror" in made[2]
    assert made[1] is False


EVIDENCE = [
    ("| a | b |\n|---|---|\n| <1 cup | 240 ml |>\n| 2 cups | 480 ml |\n\nafter", "1 cup240 ml"),
    ("|a|b|\n|---|---|\n<|1 cup|240 ml|>\n|2|3|\n", "1 cup240 ml"),
    ("<| a | b |>\n|---|---|\n| 1 | 2 |\n", "ab"),
    ("before\n\n<```\ncode\n```>\n\nafter", "code"),
    ("a\n<# Title\n\n- one\n>- two\n", "Titleone"),
    ("1. one\n2. <two *and* **more**>\n", "two and more"),
    ("x & y &amp; <z \\* &lt;b&gt;> end", "z * <b>"),
    ("[a](http://a.b/a) then <a> and a", "a"),
    ("😀 *one* <😀 two> three", "😀 two"),
    ("3. three\n4. <four>\n", "four"),
    ("<a> b *c* <d>", "ad"),
]


@pytest.mark.parametrize(("written", "wanted"), EVIDENCE)
def test_evidence_in_markdown_is_marked_to_the_letter(shown: Any, written: str, wanted: str) -> None:
    """Whatever it begins or ends in; between < and > in the text, which are left out."""
    text, cuts = "", []
    for at, part in enumerate(re.split(r"(?<!&)[<>](?!b&)", written)):
        if at % 2:
            cuts.append([len(text), len(text) + len(part)])
        text += part
    made = shown.execute_script(
        f"{_markdown_script()}\nconst made = rendered({json.dumps(text)}, {cuts});"
        "return [[...made.querySelectorAll('mark')].map((one) => one.textContent).join(''), made.innerHTML]"
    )
    assert made[0].strip() == wanted, made[1]


def test_evidence_that_markdown_hides_is_shown_in_the_source(shown: Any) -> None:
    """Evidence in a link's address has no place in the rendered text."""
    text = "# T\n\n[words](http://evidence.example/)\n"
    at = text.index("evidence")
    script = f"{_markdown_script()}\nreturn rendered({json.dumps(text)}, [[{at}, {at + 8}]])"
    assert shown.execute_script(script) is None


def test_texts_with_astral_characters(shown: Any) -> None:
    """Offsets count code points: a piece of emoji must not seem to reach into the next one."""
    script = (Path(__file__).parents[2] / "reports/page/script/explorer_data.js").read_text(encoding="utf-8")
    text = shown.execute_async_script(
        f"{script}\nindex = {{documents: {{0: ['d', 0, 14]}}}};"
        "kept.set('text-0', Promise.resolve({0: [[0, '😀😀😀'], [4, 'next 😀 piece']]}));"
        "textOf({doc: 0, start: 4, end: 10}).then(arguments[arguments.length - 1])"
    )
    assert text == "next 😀"
