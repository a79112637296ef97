"""Bringing data sets in from other formats: one module a format, all through one `Source` and one `DatasetWriter`."""

from harness.data.importers.dataset_writer import Imported
from harness.data.importers.options import Options
from harness.data.importers.registry import FORMATS, import_dataset

__all__ = ["FORMATS", "Imported", "Options", "import_dataset"]
