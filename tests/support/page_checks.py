"""What must hold of every page in a browser: nothing cut off or covered, and no violation that axe-core finds."""

from importlib.resources import files
from pathlib import Path
from typing import Any

LAYOUT = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")


def layout_faults(browser: Any) -> list[list[Any]]:
    """Texts that their box cuts off, that lie outside of their figure, or over another text; by their boxes."""
    found: list[list[Any]] = browser.execute_script(LAYOUT)
    return found


def accessibility_faults(browser: Any) -> list[tuple[str, list[str]]]:
    """Violations of WCAG 2 A and AA by axe-core, contrast included, with everything unfolded: the rule, and where."""
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    browser.execute_script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    browser.set_script_timeout(120)
    found = browser.execute_async_script("const done = arguments[arguments.length - 1]; axe.run(document).then(done)")
    assert "color-contrast" in {one["id"] for one in found["passes"]}
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
