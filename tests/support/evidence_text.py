"""The text of a span of a data set, for tests that look at evidence."""

from harness.core.records import Span
from harness.data.dataset import Dataset


def text_of(data: Dataset, span: Span) -> str:
    """The characters of the span in its document."""
    return data.by_id[span.doc].text[span.start : span.end]
