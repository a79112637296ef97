"""Bringing data sets in from other formats: one module a format, all through one `Source` and one `Draft`."""

from harness.importers.draft import Imported
from harness.importers.importing import FORMATS, import_dataset
from harness.importers.options import Options

__all__ = ["FORMATS", "Imported", "Options", "import_dataset"]
