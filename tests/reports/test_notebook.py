"""What a notebook shows, in a real browser: the output of a cell, as the notebook puts it into its page."""

from pathlib import Path
from typing import Any

import pytest

from harness import ConfigError, Launch, compare
from harness.core.errors import HarnessError
from harness.core.notebook_views import view
from harness.running.acceptance import accept
from reports import report
from reports.gate import compare_with_baseline


def inside(browser: Any, tmp_path: Path, output: str) -> None:
    """Open the output of a cell, and enter its frame."""
    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><meta charset='utf-8'><title>cell</title>{output}", encoding="utf-8")
    browser.get(path.as_uri())
    browser.switch_to.frame(browser.find_element("tag name", "iframe"))


def test_the_table_of_a_comparison(browser: Any, launch: Launch, tmp_path: Path) -> None:
    """It sorts, filters and groups; a plain table stays beside it for places that show no frames."""
    found = compare(launch)
    output = found._repr_html_()
    assert "<summary>as a plain table</summary><table>" in output
    inside(browser, tmp_path, output)
    names = "return [...document.querySelectorAll('tr[data-trial]')].map((row) => row.cells[0].textContent)"
    ranked = [row.name for row in sorted(found.rows, key=lambda row: -row.mean_min)]
    assert browser.execute_script(names) == ranked
    browser.find_element("css selector", "input[type=search]").send_keys("recursive")
    assert browser.execute_script(names) == [name for name in ranked if "recursive" in name]
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_figure_of_a_comparison(browser: Any, launch: Launch, tmp_path: Path) -> None:
    """Its points have values; it is written as SVG or as a page."""
    figure = compare(launch).plot()
    assert figure.write(tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "<!doctype html>" in figure.write(tmp_path / "plot.html").read_text(encoding="utf-8")
    inside(browser, tmp_path, figure._repr_html_())
    says = "return [...document.querySelectorAll('.figure.wide [data-say]')].map((one) => one.dataset.say)"
    assert len(browser.execute_script(says)) == len(launch.results)


def test_the_queries_of_a_launch(browser: Any, launch: Launch, tmp_path: Path) -> None:
    """The explorer alone, beginning with the trials that are named."""
    from selenium.webdriver.support.ui import WebDriverWait

    names = [result.name for result in launch.results]
    inside(browser, tmp_path, launch.explore(names[3], names[2])._repr_html_())
    ready = "return document.getElementById('explorer')?.dataset.ready === 'true'"
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(ready))
    heads = "return [...document.querySelectorAll('.pair h4')].map((one) => one.textContent)"
    assert browser.execute_script(heads) == [names[3], names[2]]
    browser.find_elements("css selector", "#queries button")[1].click()
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    with pytest.raises(ConfigError, match="no trial 'x'"):
        launch.explore("x")
    with pytest.raises(ConfigError, match="has results only"):
        Launch("l", launch.experiment, launch.results).explore()


def test_links_stay_in_the_frame(browser: Any, launch: Launch, tmp_path: Path) -> None:
    """A link within the page would load the notebook into the frame, as fragments are those of the notebook there."""
    from selenium.webdriver.support.ui import WebDriverWait

    inside(browser, tmp_path, report(launch)._repr_html_())
    ready = "return document.getElementById('explorer')?.dataset.ready === 'true'"
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(ready))
    last = browser.find_elements("css selector", "#comparison tbody a")[-1]
    name = last.text
    browser.execute_script("arguments[0].click()", last)
    chosen = "return document.getElementById('b').selectedOptions[0].textContent"
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(chosen) == name)
    browser.execute_script("document.querySelector('nav a').click()")
    assert browser.execute_script("return document.querySelector('h1').textContent") == launch.experiment.name


def test_the_result_of_a_gate(browser: Any, launch: Launch, tmp_path: Path) -> None:
    """The history, this run the newest, also of a comparison that was logged nowhere."""
    found = compare_with_baseline(launch, accept(launch, who="Ada", when="2026-01-01", why="<b>first"))
    inside(browser, tmp_path, found._repr_html_())
    rows = "return [...document.querySelectorAll('#history tbody tr')].map((row) => row.cells[0].textContent)"
    assert browser.execute_script(rows) == ["this run"]
    assert "accepted by Ada on 2026-01-01: <b>first" in browser.execute_script("return document.body.textContent")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_an_object_that_nothing_shows() -> None:
    """One line, not a KeyError."""
    with pytest.raises(HarnessError, match="int: nothing shows it"):
        view(1, "table")
