"""Component base classes, roles and built-in components, and the names that their authors need."""

from typing import TYPE_CHECKING

from harness.core.public_names import public_names

if TYPE_CHECKING:
    from harness.components.component import Component as Component
    from harness.components.component import post_answer as post_answer
    from harness.components.component import runtime as runtime
    from harness.components.context_window import allocate as allocate
    from harness.components.llm_roles import LlmAugmenter as LlmAugmenter
    from harness.components.llm_roles import LlmChunker as LlmChunker
    from harness.components.llm_roles import LlmJudge as LlmJudge
    from harness.components.llm_roles import LlmReranker as LlmReranker
    from harness.components.roles import Augmenter as Augmenter
    from harness.components.roles import Chunker as Chunker
    from harness.components.roles import Embedder as Embedder
    from harness.components.roles import EmbeddingChunker as EmbeddingChunker
    from harness.components.roles import Fusion as Fusion
    from harness.components.roles import FusionContext as FusionContext
    from harness.components.roles import Judge as Judge
    from harness.components.roles import LocalJudge as LocalJudge
    from harness.components.roles import Metric as Metric
    from harness.components.roles import Replay as Replay
    from harness.components.roles import Reranker as Reranker
    from harness.components.roles import Retriever as Retriever
    from harness.components.roles import ScalesChunker as ScalesChunker
    from harness.components.roles import Selected as Selected
    from harness.components.roles import Selector as Selector
    from harness.components.roles import best_hits_first as best_hits_first
    from harness.components.verdict import Finding as Finding
    from harness.components.verdict import Score as Score
    from harness.components.verdict import Verdict as Verdict
    from harness.components.verdict import average_precision as average_precision
    from harness.components.verdict import fraction_relevant as fraction_relevant
    from harness.core.rankings import Rankings as Rankings
    from harness.core.rankings import best_first as best_first
    from harness.core.records import Case as Case
    from harness.core.records import Chunk as Chunk
    from harness.core.records import Document as Document
    from harness.core.records import Drop as Drop
    from harness.core.records import Embedded as Embedded
    from harness.core.records import Hit as Hit
    from harness.core.records import Outcome as Outcome
    from harness.core.records import Query as Query
    from harness.core.records import Span as Span
    from harness.core.records import Spans as Spans
    from harness.core.records import Vectors as Vectors
    from harness.core.records import spanning as spanning
    from harness.llm.answer_schema import AnswerSchema as AnswerSchema
    from harness.llm.answer_schema import Choice as Choice
    from harness.llm.answer_schema import Entry as Entry
    from harness.llm.answer_schema import ListOf as ListOf
    from harness.llm.answer_schema import Text as Text
    from harness.llm.answers import Completion as Completion
    from harness.llm.answers import Failure as Failure
    from harness.llm.answers import Judgment as Judgment
    from harness.llm.answers import Label as Label
    from harness.llm.prompter import Prompt as Prompt
    from harness.llm.prompter import Task as Task
    from harness.llm.untrusted_text import fence as fence
    from harness.llm.untrusted_text import folded as folded
    from harness.llm.untrusted_text import nonce as nonce
    from harness.storage.store import Artifact as Artifact

__getattr__, __dir__, __all__ = public_names(__name__)
