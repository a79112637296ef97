"""The page of scheduled runs, from real runs of the gate, in a real browser."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chromium import window
from nightly import NIGHTLY
from page_checks import accessibility_faults, layout_faults

HARNESS = str(Path(sys.executable).parent / "harness")


@pytest.fixture
def page(garden_data: Path, tmp_path: Path, tracking: str) -> Path:
    """A baseline, a fine run, two with fewer passages, and one as before."""

    def run(passages: int, *arguments: str, code: int = 0) -> str:
        (tmp_path / "nightly.yaml").write_text(NIGHTLY.replace("k: 4", f"k: {passages}"))
        command = [HARNESS, "gate", "nightly.yaml", "--tracking", tracking, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout

    run(4, "--accept", "--why", "first", "--who", "Ada")
    run(4)
    run(1, code=3)
    assert "History" in run(1, "--out", "worse", code=3)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/gate-2.json").write_text((tmp_path / "worse/gate.json").read_text())
    run(4, "--out", "out")
    return tmp_path / "out/history.html"


def test_from_a_run_to_the_passages_of_a_query(browser: Any, page: Path) -> None:
    """Each run has its verdict and what changed; a click leads to the queries that got worse, with both selections."""
    browser.get(page.as_uri())
    cells = "[...row.cells].map((one) => one.textContent)"
    listed = "return [...document.querySelectorAll('#history tbody tr')]"
    rows = browser.execute_script(f"{listed}.map((row) => {cells})")
    assert [row[1] for row in rows] == ["◆ fine", "● cannot tell", "● cannot tell", "◆ fine"]
    setting = "fixed · bm25: selector.top_k.k: 4 → 1"
    assert [row[5] for row in rows] == [f"no longer: {setting}", "nothing", setting, "nothing"]
    assert [row[4] for row in rows][::3] == ["0", "0"]
    assert rows[1][4] == rows[2][4] == str(json.loads((page.parent / "gate-2.json").read_text())["queries_worse"])
    links = browser.find_elements("css selector", "#history tbody a")
    browser.execute_script("arguments[0].click()", links[1])
    opened = "details[open] > details"
    (first, *_) = browser.find_elements("css selector", opened)
    assert "recall@3 1.000 →" in first.text
    browser.execute_script("arguments[0].open = true", first)
    sides = browser.execute_script(
        f"return [...document.querySelector('{opened}').querySelectorAll('.beside > div')]"
        ".map((side) => [side.querySelector('h3').textContent, side.querySelectorAll('.passage').length,"
        " side.querySelectorAll('mark').length])"
    )
    assert [(head, count) for head, count, _ in sides] == [("baseline", 4), ("that day", 1)]
    assert sides[0][2] > 0
    # The figure's points lead there as well.
    point = browser.find_elements("css selector", ".figure.wide [data-say^='run 3']")[0]
    browser.execute_script("location.hash = ''")
    from selenium.webdriver.common.action_chains import ActionChains

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", point)
    ActionChains(browser).move_to_element(point).click().perform()
    assert "#run-" in browser.current_url
    for width in (390, 1440, 1920):
        for scheme in ("light", "dark"):
            window(browser, width, scheme)
            assert layout_faults(browser) == [], (width, scheme)
    for scheme in ("light", "dark"):
        window(browser, 1440, scheme)
        assert accessibility_faults(browser) == [], scheme
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
