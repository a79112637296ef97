"""Chunkers: one class per file, each cutting a document into spans."""

from harness.chunkers.chonkie import Chonkie
from harness.chunkers.cluster_semantic import ClusterSemantic
from harness.chunkers.fixed import Fixed
from harness.chunkers.langchain import LangChain
from harness.chunkers.llama_index import LlamaIndex
from harness.chunkers.llm import Llm
from harness.chunkers.markdown import Markdown
from harness.chunkers.paragraph import Paragraph
from harness.chunkers.recursive import Recursive
from harness.chunkers.scales import Scales
from harness.chunkers.semantic import Semantic
from harness.chunkers.sentence import Sentence

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
    "Paragraph",
    "Recursive",
    "Scales",
    "Semantic",
    "Sentence",
]
