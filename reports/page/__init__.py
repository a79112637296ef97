"""The report page: sections, figures, and a query explorer in one self-contained HTML file."""

from reports.page.document import page

__all__ = ["page"]
