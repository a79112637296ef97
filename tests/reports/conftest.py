"""A launch with hostile documents, and its page in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from odd_documents import odd_launch

from harness import Launch
from reports import report


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """Two chunkers and two retrievers on plain documents, and on some that try to run scripts."""
    return odd_launch(tmp_path_factory.mktemp("page"))


@pytest.fixture
def shown(browser: Any, launch: Launch, tmp_path: Path) -> Iterator[Any]:
    """The page, opened from disk, with the explorer ready; nothing may be fetched and no script may fail."""
    from selenium.webdriver.support.ui import WebDriverWait

    path = report(launch).write(tmp_path / "report.html")
    browser.get(path.as_uri())
    ready = "return document.getElementById('explorer')?.dataset.ready === 'true'"
    WebDriverWait(browser, 30).until(lambda driver: driver.execute_script(ready))
    yield browser
    assert browser.execute_script("return window.hacked") is None
    assert browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)") == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
