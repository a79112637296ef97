"""The MLflow UI in a real browser: the links printed by a run lead to the right pages."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HARNESS = str(Path(sys.executable).parent / "harness")
EXPERIMENT = """
name: seen
question: Which chunks, at which budget?
data: garden
tokenizer: words
embedder: {hashing: {dimensions: 64}}
selector: [{top_k: {k: 6}}]
metrics: [recall@50t, recall@3, ndcg@5]
grid:
  chunker: [{fixed: {size: 20}}, {fixed: {size: 40}}]
  retriever: [dense, bm25]
compare: {baseline: {chunker: fixed}, on: recall@50t}
"""


@pytest.fixture
def pages(garden_data: Path, tmp_path: Path, tracking: str) -> Iterator[dict[str, str]]:
    """The links of a run, served by `harness ui`."""
    (tmp_path / "seen.yaml").write_text(EXPERIMENT)
    command = [HARNESS, "run", "seen.yaml", "--tracking", tracking]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    links = dict(re.findall(r"^  (\w[\w ]*?)\s+(http://\S+)$", out, re.MULTILINE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shown = subprocess.Popen(
        [HARNESS, "ui", "--tracking", tracking, "--port", str(port)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", shown)
        yield {name: link.replace(":5000", f":{port}") for name, link in links.items()}
    finally:
        os.killpg(shown.pid, signal.SIGTERM)
        shown.wait()


def wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            continue
        return
    raise RuntimeError("the MLflow UI did not start")


def test_the_links_show_the_launch(browser: Any, pages: dict[str, str]) -> None:
    """Leaderboard with settings and metrics, charts, queries side by side, the launch itself; no script error."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    expected = {
        "Leaderboard": ["fixed size=20 · dense", "fixed size=40 · bm25", "verdict", "difference", "cannot tell"],
        "Charts": ["Which settings win", "Quality against cost", "fixed size=20 · dense"],
        "Query by query": ["eval/per_query.json", "How many litres does", "recall@50t"],
        "Launches": ["launch 2", "top_trial"],
        "Traces": ["Comparing", "How many litres does", "✓ at"],
    }
    assert set(pages) == set(expected)
    for name, link in pages.items():
        browser.get("about:blank")
        browser.get(link)

        def complete(driver: Any, wanted: list[str] = expected[name]) -> bool:
            shown = driver.find_element(By.TAG_NAME, "body").text
            return all(text in shown for text in wanted)

        WebDriverWait(browser, 60).until(complete, f"{name} lacks one of {expected[name]}")
    severe = [entry for entry in browser.get_log("browser") if "Uncaught" in entry["message"]]
    assert not severe
