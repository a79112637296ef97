"""Chunkers: one class per file, each splitting a document into spans."""

from harness.components.chunkers.chonkie import Chonkie
from harness.components.chunkers.cluster_semantic import ClusterSemantic
from harness.components.chunkers.fixed import Fixed
from harness.components.chunkers.langchain import LangChain
from harness.components.chunkers.llama_index import LlamaIndex
from harness.components.chunkers.llm import Llm
from harness.components.chunkers.markdown import Markdown
from harness.components.chunkers.none import NoChunker
from harness.components.chunkers.paragraph import Paragraph
from harness.components.chunkers.recursive import Recursive
from harness.components.chunkers.scales import Scales
from harness.components.chunkers.semantic import Semantic
from harness.components.chunkers.sentence import Sentence

BUILTINS = (
    Fixed,
    Sentence,
    Paragraph,
    Recursive,
    Markdown,
    Semantic,
    ClusterSemantic,
    Scales,
    Llm,
    LangChain,
    LlamaIndex,
    Chonkie,
    NoChunker,
)

__all__ = [
    "BUILTINS",
    "Chonkie",
    "ClusterSemantic",
    "Fixed",
    "LangChain",
    "LlamaIndex",
    "Llm",
    "Markdown",
    "NoChunker",
    "Paragraph",
    "Recursive",
    "Scales",
    "Semantic",
    "Sentence",
]
