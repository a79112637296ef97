"""Draws the pictures of the pages in docs/pages: `python -P docs/pictures.py REPORT.html HISTORY.html NOTEBOOK.html`.

REPORT.html is made by `harness report experiments/quickstart.yaml`, HISTORY.html by `harness gate --out`;
NOTEBOOK.html has the outputs (`_repr_html_`) of the cells in docs/report.md. Needs Chromium and its driver, and the
tests' extra.
"""

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from chromium import start_chromium, window

FOLDER = Path(__file__).parent / "pages"
SCREENS = ((1440, 900), (1920, 1080))
PHONE = (390, 1250)
SCHEMES = ("light", "dark")


def shown(driver: Any, url: str, size: tuple[int, int], scheme: str, prepare: str) -> Image.Image:
    window(driver, size[0], scheme, size[1])
    driver.get("about:blank")
    driver.get(url)
    ready = "const one = document.getElementById('explorer'); return !one || one.dataset.ready === 'true'"
    WebDriverWait(driver, 30).until(lambda page: page.execute_script(ready))
    driver.execute_script(prepare)
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")


def pictures(driver: Any, name: str, url: str, prepare: str = "") -> Iterator[tuple[str, Image.Image]]:
    for size in SCREENS:
        for scheme in SCHEMES:
            yield f"{name}_{size[0]}_{scheme}", shown(driver, url, size, scheme, prepare)
    phones = [shown(driver, url, PHONE, scheme, prepare) for scheme in SCHEMES]
    both = Image.new("RGB", (2 * PHONE[0] + 20, PHONE[1]), "#808080")
    for at, phone in enumerate(phones):
        both.paste(phone, (at * (PHONE[0] + 20), 0))
    yield f"{name}_{PHONE[0]}", both


def main(report: str, history: str, notebook: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    page, runs, cells = (Path(file).resolve().as_uri() for file in (report, history, notebook))
    lost = "const run = document.querySelectorAll('#runs > details')[2]; run.open = true;"
    lost += "const query = run.querySelector('details'); query.open = true; query.scrollIntoView()"
    with tempfile.TemporaryDirectory() as profile:
        driver = start_chromium(Path(profile), "--hide-scrollbars")
        views = [("report", page, ""), ("explorer", f"{page}#which=differ", ""), ("history", runs, "")]
        for name, url, prepare in (*views, ("lost", runs, lost), ("notebook", cells, "scrollTo(0, 0)")):
            for file, picture in pictures(driver, name, url, prepare):
                picture.quantize(256).save(FOLDER / f"{file}.png", optimize=True)
                print(file)
        driver.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
