"""Retrievers of LangChain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.components.retrievers.library_retriever import LibraryRetriever
from harness.components.roles import SystemHit
from harness.core.records import Returned


@dataclass(frozen=True)
class LangChain(LibraryRetriever):
    """A retriever of LangChain: `factory` is `module:function`, which returns any BaseRetriever.

    The first `depth` of what it returns count. `doc` and `start` are keys of a passage's metadata, used where they are
    present: the id of its document, and its offset in characters, as LangChain's splitters add with `add_start_index`.
    """

    package: ClassVar[str] = "langchain-core"
    module: ClassVar[str] = "langchain_core"

    doc: str = "source"
    start: str = "start_index"

    @classmethod
    def name(cls) -> str:
        """Always "langchain", the library's own spelling."""
        return "langchain"

    def returned(self, retriever: Any, query: str) -> Sequence[Any]:
        """Return the documents that the retriever returns."""
        return list(retriever.invoke(query))

    def hit(self, record: Any) -> SystemHit:
        """Return a document of LangChain as a passage, without a score: retrievers have none."""
        text, metadata = record.page_content, record.metadata
        doc, start = metadata.get(self.doc), metadata.get(self.start)
        known = type(start) is int and start >= 0
        named = None if doc is None else str(doc)
        place = Returned(text, named, start, start + len(text)) if known else Returned(text, named)
        return SystemHit(place, None, record.id or "")
