"""How the cost of each stage grows with the corpus: CPU seconds and memory at several sizes, and exponents.

`python -P bench/scale.py FOLDER 10000 100000 1000000` makes corpora of so many passages in a folder, from public data
sets below HARNESS_SHARED_DATA, and runs a grid of 12 trials on each in a process of its own; a million takes about half
an hour and 12 GB of disk. Nothing is asserted. docs/scaling.md has the figures of one machine.
"""

import json
import math
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("HARNESS_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
QUERIES = 1000
EXPERIMENT = """\
name: scale
data: {data}
queries: validation
chunker: {{fixed: {{size: 256}}}}
embedder: {{hashing: {{dimensions: 128}}}}
metrics: [recall@5]
grid:
  retriever:
    - dense
    - bm25
    - hybrid
    - lancedb
    - lancedb: {{search: full_text}}
    - milvus
  selector: [{{top_k: {{k: 5}}}}, {{top_k: {{k: 10}}}}]
"""


def make(count: int, folder: Path) -> Path:
    """A data set of so many passages, each of three random sentences and its number, and of questions about some."""
    if (folder / "manifest.yaml").is_file():
        return folder
    folder.mkdir(parents=True)
    rng = random.Random(count)
    sentences = sorted({one for text in texts() for one in re.split(r"(?<=[.!?])\s+", text) if 40 < len(one) < 400})
    with (folder / "corpus.jsonl").open("w") as corpus, (folder / "queries.jsonl").open("w") as queries:
        for number in range(count):
            text = " ".join([*rng.choices(sentences, k=3), f"This is passage {number}."])
            corpus.write(json.dumps({"id": f"p{number}", "text": text}) + "\n")
            if number % max(1, count // QUERIES) == 0:
                quote = text[: rng.randint(60, 200)].rstrip()
                evidence = [{"doc": f"p{number}", "start": 0, "end": len(quote), "quote": quote}]
                query = {"id": f"q{number}", "text": " ".join(quote.split()[:12]), "evidence": evidence}
                queries.write(json.dumps(query) + "\n")
    content = "name: scale\ncorpus: {file: corpus.jsonl}\nqueries: {validation: {file: queries.jsonl}}\n"
    (folder / "manifest.yaml").write_text(content)
    return folder


def texts() -> list[str]:
    """The texts of public corpora."""
    found = []
    for name in ("beir-scifact", "beir-nfcorpus"):
        with (SHARED / name / "corpus.jsonl").open() as lines:
            found += [json.loads(line)["text"] for line in lines]
    return found


class Account:
    """CPU seconds of each stage without those that it had built, and the memory of the process during each."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.memory: dict[str, tuple[int, int]] = {}
        """The most megabytes during each stage, and how many of them were not those of mapped files."""
        self._inner = [0.0]
        self._running = ["the rest"]
        threading.Thread(target=self._watch, daemon=True).start()

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        self._inner.append(0.0)
        self._running.append(name)
        try:
            return work()
        finally:
            self._running.pop()
            spent = time.process_time() - begin
            self.seconds[name] += spent - self._inner.pop()
            self._inner[-1] += spent

    def _watch(self) -> None:
        while True:
            now = resident("VmRSS"), resident("RssAnon")
            self.memory[self._running[-1]] = max(now, self.memory.get(self._running[-1], now))
            time.sleep(0.05)


def resident(which: str) -> int:
    """Megabytes of memory: VmHWM the most so far, VmRSS now, RssAnon of it without mapped files."""
    found = re.search(rf"{which}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) // 1024 if found else 0


def measure(folder: Path) -> None:
    """Run the grid on one corpus in this process, and print what each stage took as JSON."""
    from harness import read_experiment, run
    from harness.running.stages.embeddings import Embeddings
    from harness.storage.store import Store

    account = Account()
    build, fill = Store._build, Embeddings.fill

    def built(self: Store, address: str, key: Any, make: Any) -> Any:
        name = str(key["stage"]).removesuffix("_part")
        if name in ("index", "retrieve"):
            retriever = key["retriever"]
            search = retriever["settings"].get("search", "")
            name = f"{name} {retriever['name']} {search}".strip()
        return account.timed(name, lambda: build(self, address, key, make))

    def filled(self: Embeddings, *given: Any, **named: Any) -> Any:
        return account.timed("embed", lambda: fill(self, *given, **named))

    Store._build, Embeddings.fill = built, filled  # type: ignore[method-assign]
    (folder / "x.yaml").write_text(EXPERIMENT.format(data=folder))
    begin, wall = time.process_time(), time.perf_counter()
    launch = run(read_experiment(folder / "x.yaml"), store=folder / "store", log=False)
    total = time.process_time() - begin
    account.seconds["the rest"] = total - sum(account.seconds.values())
    facts = {result.name: result.efficiency for result in launch.results}
    record = {
        "seconds": account.seconds,
        "total": total,
        "wall": time.perf_counter() - wall,
        "peak": resident("VmHWM"),
        "memory": account.memory,
        "recall": {name: row["ann_recall"] for name, row in facts.items() if "ann_recall" in row},
        "ms": {name: row["retrieve_p50_ms"] for name, row in facts.items()},
        "bytes": {name: row["index_bytes"] for name, row in facts.items()},
        "means": {result.name: result.mean("recall@5") for result in launch.results},
    }
    (folder / "measured.json").write_text(json.dumps(record))


def main(folder: Path, sizes: list[int]) -> None:
    measured = []
    for size in sizes:
        data = make(size, folder / str(size))
        if not (data / "measured.json").is_file():
            environment = {**os.environ, "HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
            subprocess.run([sys.executable, "-P", __file__, "--measure", str(data)], check=True, env=environment)
        measured.append(json.loads((data / "measured.json").read_text()))
    print(f"{'CPU seconds':<32}" + "".join(f"{size:>12,}" for size in sizes) + "    exponent of the last step")
    for name in measured[-1]["seconds"]:
        row = [one["seconds"].get(name, 0.0) for one in measured]
        print(f"{name:<32}" + "".join(f"{value:>12.1f}" for value in row) + f"    {exponent(row, sizes)}")
    for name in ("total", "wall", "peak"):
        row = [one[name] for one in measured]
        print(f"{name:<32}" + "".join(f"{value:>12.1f}" for value in row) + f"    {exponent(row, sizes)}")
    for name in ("recall", "ms", "bytes", "means", "memory"):
        print(f"{name}: {json.dumps(measured[-1][name])}")


def exponent(row: list[float], sizes: list[int]) -> str:
    """The growth from the last size but one to the last; empty for what takes less than a second."""
    if len(row) < 2 or row[-2] < 0.5:
        return ""
    return f"{math.log(row[-1] / row[-2]) / math.log(sizes[-1] / sizes[-2]):.2f}"


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]])
