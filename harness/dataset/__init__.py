"""Data sets: documents and queries with evidence, read strictly, checked, and imported from other formats."""

from harness.dataset.check import Finding, check_dataset
from harness.dataset.importing import IMPORTERS, import_dataset
from harness.dataset.load import Dataset, QuerySet, load_dataset
from harness.dataset.manifest import Manifest, find_dataset, read_manifest

__all__ = [
    "IMPORTERS",
    "Dataset",
    "Finding",
    "Manifest",
    "QuerySet",
    "check_dataset",
    "find_dataset",
    "import_dataset",
    "load_dataset",
    "read_manifest",
]
