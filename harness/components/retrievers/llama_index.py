"""Retrievers of LlamaIndex."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.components.retrievers.library_retriever import LibraryRetriever
from harness.components.roles import SystemHit
from harness.components.roles.passage_retriever import finite
from harness.core.records import Returned


@dataclass(frozen=True)
class LlamaIndex(LibraryRetriever):
    """A retriever of LlamaIndex: `factory` is `module:function`, which returns anything with `retrieve`.

    The first `depth` of what it returns count, in its order. A passage's document is the one that the node was cut
    from, or with `doc` that key of its metadata; the offsets are those of the node.
    """

    package: ClassVar[str] = "llama-index-core"
    module: ClassVar[str] = "llama_index"

    doc: str = ""

    def returned(self, retriever: Any, query: str) -> Sequence[Any]:
        """Return the nodes that the retriever returns."""
        return list(retriever.retrieve(query))

    def hit(self, record: Any) -> SystemHit:
        """Return a node of LlamaIndex as a passage, with its text as it is without metadata."""
        node = record.node
        text = node.get_content()
        doc = node.metadata.get(self.doc) if self.doc else node.ref_doc_id
        named = None if doc is None else str(doc)
        start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        place = Returned(text, named) if start is None or end is None else Returned(text, named, start, end)
        return SystemHit(place, finite(record.score), node.node_id)
