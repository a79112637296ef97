"""The report of 100 trials and 500 queries of SciFact: its size, and how long a browser takes.

`python -P bench/page.py` with the tests' extra installed, Chromium and its driver, and SciFact below
HARNESS_SHARED_DATA. Takes about two minutes; prints figures, asserts nothing.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from chromium import start_chromium
from project import harness

from harness.data.importers import import_dataset

EXPERIMENT = """
name: wide
data: scifact
queries: train
tokenizer: words
chunker: {fixed: {size: 100}}
embedder: hashing
metrics: [recall@5, ndcg@10, mrr, recall@1000t]
grid:
  chunker: [fixed: {size: 60}, fixed: {size: 120}, recursive: {size: 80}, sentence: {size: 100}, fixed: {size: 90}]
  retriever: [bm25: {depth: 50}, dense: {depth: 50}, hybrid: {depth: 50}, bm25: {depth: 20}, dense: {depth: 30}]
  selector: [[{top_k: {k: 10}}], [dedup, {top_k: {k: 10}}], [{top_k: {k: 5}}], [dedup, {top_k: {k: 20}}]]
"""
SELECT = "const one = %s; one.value = %r; for (const name of ['input', 'change']) one.dispatchEvent(new Event(name));"
CHANGED = (
    "await new Promise((done) => new MutationObserver(done)"
    ".observe(document.getElementById('detail'), {childList: true}));"
)
GROUP, FIND = "document.querySelectorAll('#comparison .controls select')[0]", "document.getElementById('filter')"
INTERACTIONS = {
    "sort the table": "document.querySelector('#comparison thead th:nth-child(4)').click();",
    "group it": SELECT % (GROUP, "2"),
    "show it ungrouped": SELECT % (GROUP, "0"),
    "queries that differ": SELECT % ("document.getElementById('which')", "differ"),
    "all queries": SELECT % ("document.getElementById('which')", "all"),
    "find": SELECT % (FIND, "cell"),
    "find nothing": SELECT % (FIND, ""),
    "another query": f"document.querySelectorAll('#queries button')[107].click(); {CHANGED}",
    "another trial": SELECT % ("document.getElementById('b')", "9") + CHANGED,
    "sort the queries": "document.querySelector('#querylist th[data-sort=a] button').click();",
}
TIMED = """
const done = arguments[arguments.length - 1], begin = performance.now();
(async () => { %s requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin))); })();
"""


def main(folder: Path) -> None:
    import_dataset("beir", Path(os.environ["HARNESS_SHARED_DATA"]) / "beir-scifact", folder / "datasets/scifact")
    (folder / "x.yaml").write_text(EXPERIMENT)
    harness(folder, "run", "x.yaml", "--no-mlflow", "--limit", "500")
    begin = time.monotonic()
    harness(folder, "report", "x.yaml", "--limit", "500", "--out", "x.html")
    size = (folder / "x.html").stat().st_size
    print(f"report of 100 trials x 500 queries: {size / 1e6:.1f} MB, written in {time.monotonic() - begin:.0f} s")
    driver = start_chromium(folder / "profile")
    for _ in range(3):
        driver.get("about:blank")
        begin = time.monotonic()
        driver.get((folder / "x.html").as_uri())
        while not driver.execute_script("return document.getElementById('explorer').dataset.ready === 'true'"):
            time.sleep(0.01)
        print(f"ready after {time.monotonic() - begin:.2f} s")
    for name, script in INTERACTIONS.items():
        print(f"{name}: {driver.execute_async_script(TIMED % script):.0f} ms")
    driver.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_folder:
        main(Path(made_folder))
