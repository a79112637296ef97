"""Files of documents as text: Markdown, reStructuredText, HTML, plain text, PDF and Word."""

from harness.data.documents.extracted import Extracted, place_in
from harness.data.documents.reading import KINDS, extracted

__all__ = ["KINDS", "Extracted", "extracted", "place_in"]
