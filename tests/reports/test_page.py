"""The report page in a real browser: it shows what was measured, even with hostile documents."""

import re
from typing import Any

import pytest
from chromium import window
from odd_documents import QUOTES

from harness import ConfigError, Launch
from reports import compare, launch_report, report
from reports.appearance import marked
from reports.page.explorer import pack


def detail(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('detail').innerText"))


def choose(browser: Any, query: str) -> None:
    """Click on a query in the list, and wait until it is shown."""
    from selenium.webdriver.support.ui import WebDriverWait

    button = "[...document.querySelectorAll('#queries button')].find((one) => one.textContent.includes(arguments[0]))"
    browser.execute_script(f"{button}.click()", query)
    done = "return document.querySelector('#detail h3')?.textContent.includes(arguments[0])"
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(done, query))


def test_the_page_shows_what_was_measured(shown: Any, launch: Launch) -> None:
    """Answer, sections, and in the table every mean and verdict of the comparison; hostile text is only text."""
    found = compare(launch)
    body = shown.execute_script("return document.body.innerText")
    assert "Which <script>window.hacked = 5</script>?" in body
    assert report(launch).answer in body
    for title in ("Comparison", "Recall against token budget", "Quality against cost", "Effects of the factors"):
        assert title in body
    for title in ("Where evidence is lost", "Judges", "Relevance by score", "Query explorer", "Data", "Provenance"):
        assert title in body
    rows = shown.execute_script(
        "return [...document.querySelectorAll('#comparison tbody tr')].map((row) => "
        "[...row.cells].map((cell) => cell.textContent))"
    )
    ranked = sorted(found.rows, key=lambda row: -row.mean)
    assert [(row[0], row[1], row[6]) for row in rows] == [(r.name, f"{r.mean:.3f}", marked(r.verdict)) for r in ranked]
    assert launch.session is not None
    assert launch.session.manifest.corpus.sha256 in body
    # Requested budgets are among those of the curves, with their own numbers.
    heads, first = shown.execute_script(
        "const rows = document.querySelector('#budget table').rows; "
        "return [rows[0], rows[1]].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    output = dict(zip(heads, first, strict=True))
    (result,) = (one for one in launch.results if one.name == output["trial"])
    assert output["30 tokens"] == f"{result.mean('recall@30t'):.3f}"
    assert output["125 tokens"] == f"{result.mean('recall@125t'):.3f}"


def test_the_explorer_shows_each_trials_passages(shown: Any, launch: Launch) -> None:
    """In order, with the exact text of the document, ticked if the harness calls them relevant, evidence marked."""
    assert launch.session is not None
    session = launch.session
    columns = "[...document.querySelectorAll('.pair > article')]"
    read = (
        f"return {columns}.map((column) => [column.querySelector('h4').textContent, "
        "[...column.querySelectorAll(':scope > .passages > li.passage')].map((card) => "
        "[card.querySelector('.where').textContent, card.querySelector('.text').textContent])])"
    )
    names = [result.name for result in launch.results]
    for query, quote in (("the gate of amber", QUOTES[0][1]), ("the ochre bell", QUOTES[1][1])):
        choose(shown, query)
        for name, cards in shown.execute_script(read):
            rows = list(session.outputs(session.trials[names.index(name)]).rows())
            (row,) = (row for row in rows if query in row["query"])
            assert [text for _, text in cards] == [passage["text"] for passage in row["kept"]]
            for (where, _), passage in zip(cards, row["kept"], strict=True):
                assert f"{passage['doc']}:{passage['start']}–{passage['end']}" in where
                assert ("✓ evidence" in where) == passage["relevant"]
        marked = shown.execute_script("return [...document.querySelectorAll('mark')].map((one) => one.textContent)")
        assert marked
        assert all(piece.strip() in quote for piece in marked)
        assert quote in detail(shown)
    # The metric reads 30 tokens: within the third passage of twelve words, or the second of twenty.
    lines = shown.execute_script("return [...document.querySelectorAll('.cutoff')].map((one) => one.textContent)")
    assert len(lines) == 2
    assert all(re.fullmatch(r"recall@30t ends( \d+ tokens into the passage above| here)", line) for line in lines)


def test_dropped_passages_and_reasons(shown: Any, launch: Launch) -> None:
    """The dropped passages of each step are folded, complete, and with their reasons."""
    from selenium.webdriver.support.ui import WebDriverWait

    choose(shown, "cedar tower")
    shown.execute_script("document.querySelectorAll('details.dropped').forEach((one) => { one.open = true; })")
    count = "return document.querySelectorAll('details.dropped li').length"
    output = shown.execute_script(
        "return [...document.querySelectorAll('.pair > article')].map((one) => one.querySelector('h4').textContent)"
    )
    assert launch.session is not None
    session, names = launch.session, [result.name for result in launch.results]
    wanted, reasons = 0, set()
    for name in output:
        trial = session.trials[names.index(name)]
        (row,) = (row for row in session.outputs(trial).rows() if "cedar tower" in row["query"])
        wanted += len(row["dropped"])
        reasons |= {passage["reason"] for passage in row["dropped"]}
    WebDriverWait(shown, 30).until(lambda driver: driver.execute_script(count) == wanted)
    body = detail(shown)
    assert all(reason in body for reason in reasons)
    assert "heuristic_precision: grade" in body


def test_keys_and_clicks(shown: Any) -> None:
    """Arrow keys move through the list, heads sort it, text filters it, another trial redraws it; tables sort too."""
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait

    first = shown.find_elements("css selector", "#queries button")[0]
    first.send_keys(Keys.ARROW_DOWN)
    second = shown.switch_to.active_element
    wanted = second.text
    assert wanted != first.text
    title = "return document.querySelector('#detail h3').textContent"
    WebDriverWait(shown, 30).until(lambda driver: driver.execute_script(title) == wanted)

    differences = "return [...document.querySelectorAll('#queries tr')].map((row) => row.cells[3].textContent)"

    def numbers() -> list[float]:
        lines = (text.replace("−", "-") for text in shown.execute_script(differences))
        return [float(text) for text in lines if text != "–"]

    assert numbers() == sorted(numbers())
    shown.find_element("css selector", "#querylist th[data-sort=difference] button").click()
    assert numbers() == sorted(numbers(), reverse=True)
    shown.find_element("id", "filter").send_keys("cedar")
    assert len(shown.execute_script(differences)) == 1
    assert shown.find_element("id", "count").text.startswith("1 of 11 queries; B is ")
    shown.find_element("id", "filter").clear()
    shown.find_element("id", "filter").send_keys(" ")

    Select(shown.find_element("id", "b")).select_by_index(3)
    name = shown.execute_script("return document.getElementById('b').selectedOptions[0].textContent")
    headings = "return [...document.querySelectorAll('.pair h4')].map((one) => one.textContent)"
    WebDriverWait(shown, 30).until(lambda driver: name in driver.execute_script(headings))

    means = (
        "return [...document.querySelectorAll('#comparison tbody tr')].map((row) => Number(row.cells[1].textContent))"
    )
    head = shown.find_elements("css selector", "#comparison thead th")[1]
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", head)
    head.click()
    assert shown.execute_script(means) == sorted(shown.execute_script(means), reverse=True)


@pytest.mark.parametrize("width", [390, 1900])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_any_window_light_or_dark(shown: Any, width: int, scheme: str) -> None:
    """Nothing overflows the window, and text has enough contrast."""
    window(shown, width, scheme)
    assert shown.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    ink, paper = shown.execute_script(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > 7  # WCAG 2.2, success criterion 1.4.6
    assert (luminance(paper) > 0.5) == (scheme == "light")


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, as WCAG defines it."""
    channels = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_small_budget_omits_data_and_says_so(launch: Launch) -> None:
    """First dropped passages, then trials; the most important trials stay."""
    order = [2, 0, 1, 3]
    full = pack(launch, ["recall@3"], order, 10**9)
    assert full.notes == []
    less = pack(launch, ["recall@3"], order, full.size - 1)
    assert less.size < full.size
    assert "of the passages dropped by selector steps" in less.notes[0]
    smallest = pack(launch, ["recall@3"], order, 1)
    assert "the explorer has 2 of 4 trials" in smallest.notes[0]


def test_files_and_tags_for_mlflow(launch: Launch) -> None:
    """The page is among the files of a launch; every trial has tags with its comparison."""
    found = launch_report(launch)
    assert b"<!doctype html>" in found.files["report.html"][:20]
    assert set(found.tags) == {result.name for result in launch.results}
    assert found.tags[compare(launch).baseline]["verdict"] == "■ baseline"


def test_faults(launch: Launch) -> None:
    """An unknown trial, an unknown metric, and a launch without a session: one line each."""
    with pytest.raises(ConfigError, match="no trial 'x'"):
        report(launch, explore=("x",))
    with pytest.raises(ConfigError, match="'recall@7' was not scored"):
        report(launch, on="recall@7")
    with pytest.raises(ConfigError, match="has results only"):
        report(Launch("l", launch.experiment, launch.results))


def test_for_notebooks(launch: Launch) -> None:
    """The page in an iframe, escaped."""
    output = report(launch)._repr_html_()
    assert output.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "<script" not in output
