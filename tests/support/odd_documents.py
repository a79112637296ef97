"""A launch on plain documents and on some that try to run scripts, for the tests of pages."""

import json
from pathlib import Path

from harness import Experiment, Launch, Trial, run
from harness.components.chunkers import Fixed, Recursive
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25, Dense
from harness.components.selectors import Dedup, TopK
from harness.data.manifest import Manifest, PinnedFile, write_manifest
from judges import HeuristicPrecision

HOSTILE = [
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'></script><!-- {{ 7 * 7 }} ${hacked}",
    "𝒜𝒮𝒯ℛ𝒜ℒ 😀😀 signs come before the gate of amber and jade, ‮backwards‬ and after it \x00 nothing.",
    "wide" * 30_000,
    "<svg onload='window.hacked = 3'><math><style>*{display:none}</style> ]]> &amp; the ochre bell rings twice.",
]


PLAIN = list(enumerate(["amber", "basil", "cedar", "dill", "elder", "fennel", "ginger", "hyssop"]))
QUOTES = [
    (1, "the gate of amber and jade"),
    (3, "the ochre bell rings twice"),
    *((4 + n, f"The {word} tower is {n} feet high") for n, word in PLAIN),
]


def odd_launch(folder: Path) -> Launch:
    """Two chunkers and two retrievers on plain documents, and on some that try to run scripts."""
    root = folder / "datasets/odd"
    (root / "queries").mkdir(parents=True)
    plain = [f"Plain row {n} holds {word} beans. " * 3 + f"The {word} tower is {n} feet high. " for n, word in PLAIN]
    documents = [{"id": f"d{n}<b>", "text": text, "title": "<i>t"} for n, text in enumerate([*HOSTILE, *plain])]
    queries = []
    for number, quote in QUOTES:
        start = documents[number]["text"].index(quote)
        place = {"doc": documents[number]["id"], "start": start, "end": start + len(quote), "quote": quote}
        text = f"Where is {quote}? <script>window.hacked = 4</script>"
        queries.append({"id": f"q{number}", "text": text, "answer": "<b>there", "evidence": [place]})
    queries.append({"id": "none", "text": "Nothing answers this", "evidence": []})
    for name, records in (("corpus", documents), ("queries/validation", queries)):
        (root / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    sets = {"validation": PinnedFile(root / "queries/validation.jsonl", "")}
    write_manifest(Manifest(root, "odd", PinnedFile(root / "corpus.jsonl", ""), sets, licence="<u>none"))
    base = Trial(
        "odd",
        Fixed(size=12),
        Dense(depth=20),
        tokenizer="words",
        embedder=Hashing(dimensions=64),
        selector=(Dedup(), TopK(k=4)),
        metrics=("recall@30t", "recall@3"),
        judges=(HeuristicPrecision(),),
    )
    grid = {"chunker": [Fixed(size=12), Recursive(size=20)], "retriever": [Dense(depth=20), BM25(depth=20)]}
    experiment = Experiment(
        "odd <script>", base, grid, question="Which <script>window.hacked = 5</script>?", base_dir=folder
    )
    return run(experiment, store=folder / "store", log=False)
