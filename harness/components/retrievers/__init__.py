"""Retrievers: one class per file, each ranking chunks for queries."""

from harness.components.retrievers.bm25 import BM25
from harness.components.retrievers.chroma import Chroma
from harness.components.retrievers.dense import Dense
from harness.components.retrievers.ensemble import Ensemble
from harness.components.retrievers.http import Http
from harness.components.retrievers.hybrid import Hybrid
from harness.components.retrievers.lancedb import Lancedb
from harness.components.retrievers.langchain import LangChain
from harness.components.retrievers.llama_index import LlamaIndex
from harness.components.retrievers.milvus import Milvus
from harness.components.retrievers.passage_run import PassageRun
from harness.components.retrievers.pgvector import Pgvector
from harness.components.retrievers.trec_run import TrecRun

BUILTINS = (
    *(Dense, BM25, Hybrid, Ensemble),
    *(Lancedb, Milvus, Pgvector, Chroma),
    *(TrecRun, PassageRun, Http, LangChain, LlamaIndex),
)

__all__ = [
    "BM25",
    "BUILTINS",
    "Chroma",
    "Dense",
    "Ensemble",
    "Http",
    "Hybrid",
    "Lancedb",
    "LangChain",
    "LlamaIndex",
    "Milvus",
    "PassageRun",
    "Pgvector",
    "TrecRun",
]
