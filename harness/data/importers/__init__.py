"""Importing data sets: one module per format, each reading from a `Source` and writing to a `DatasetWriter`."""

from harness.data.importers.dataset_writer import Imported
from harness.data.importers.options import Options
from harness.data.importers.registry import FORMATS, import_dataset

__all__ = ["FORMATS", "Imported", "Options", "import_dataset"]
