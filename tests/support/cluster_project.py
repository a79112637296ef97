"""An experiment with own code, to run on a cluster and on one machine, and what it computed."""

import csv
import re
from pathlib import Path

from project import harness

EXPERIMENT = """\
name: far
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
embedder: {hashing: {dimensions: 64}}
selector: [dedup, {top_k: {k: 6}}]
metrics: [recall@3, ndcg@5, recall@50t]
grid:
  chunker: [fixed: {size: 20}, recursive: {size: 30}, own.py:Lines]
  retriever: [bm25, dense, hybrid]
"""
OWN = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
from harness import Chunker, Document, Spans

@dataclass(frozen=True)
class Lines(Chunker):
    def split(self, doc: Document) -> Spans:
        %s
        half = len(doc.text) // 2
        return [(0, half), (half, len(doc.text))]
"""

PACKED = {"documents": 1, "document_part": 1, "evidence": 1}
"""What the launching process makes before the first task of a cluster, and any process on one machine."""


def numbers(folder: Path, *options: str) -> list[dict[str, str]]:
    """The table of all metrics, without latencies."""
    table = csv.DictReader(harness(folder, "compare", "x.yaml", "--csv", *options).stdout.splitlines())
    return [{name: value for name, value in row.items() if not name.endswith("_ms")} for row in table]


def computed(output: str) -> dict[str, int]:
    """What a run says it has computed."""
    (found,) = re.findall(r"computed: (.*)", output)
    return {name: int(count) for count, name in (part.split() for part in found.split(", "))}
