"""Data sets: documents and queries with evidence, read strictly and verified."""

from harness.dataset.lines import Line, is_comment, text_lines
from harness.dataset.load import Dataset, QuerySet, load_dataset
from harness.dataset.manifest import Manifest, find_dataset, read_manifest

__all__ = [
    "Dataset",
    "Line",
    "Manifest",
    "QuerySet",
    "find_dataset",
    "is_comment",
    "load_dataset",
    "read_manifest",
    "text_lines",
]
