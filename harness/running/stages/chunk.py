"""Chunks and contexts that depend on models: on vectors, or on the answers of a language model."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from harness.components.llm_roles import LlmAugmenter, LlmChunker, few_enough
from harness.components.roles import Embedder, EmbeddingChunker
from harness.core.rankings import unit_rows
from harness.core.records import Document, Spans, TokenMap
from harness.data.dataset import Dataset
from harness.llm import AnswerCache, Completion, Task, stored
from harness.running.stages.embed import Embeddings
from harness.running.stages.passages import Cut, chunk_corpus
from harness.storage.store import Artifact


def cut_by_vectors(
    chunker: EmbeddingChunker, embedder: Embedder, documents: Iterable[Document], vectors: Embeddings
) -> Cut:
    """Return a function that cuts a document, given the unit vectors of the pieces that the chunker defines."""
    pieces = {doc.id: (doc, chunker.pieces(doc)) for doc in documents}
    texts = {name: [doc.text[start:end] for start, end in spans] for name, (doc, spans) in pieces.items()}
    # Embed all pieces first: many documents are too short to fill a batch.
    vectors.fill(embedder, [text for row in texts.values() for text in row])

    def cut(doc: Document) -> list[Spans]:
        known, spans = pieces[doc.id]
        return [chunker.join(known, spans, unit_rows(vectors.embed(embedder, texts[doc.id]).vectors))]

    return cut


def cut_by_answers(
    chunker: LlmChunker,
    data: Dataset,
    documents: Iterable[Document],
    maps: Mapping[str, TokenMap],
    answers: AnswerCache,
) -> Artifact:
    """Return the chunked corpus from stored answers of a language model. Raises JudgeError if too many are missing."""
    by_document = {doc.id: chunker.tasks(doc) for doc in documents}
    known = stored(answers, chunker, [task for tasks in by_document.values() for task in tasks])
    failed = few_enough(chunker, list(known.values()), "questions have no answer")

    def cut(doc: Document) -> list[Spans]:
        return [chunker.join(doc, [known[task] for task in by_document[doc.id]])]

    made = chunk_corpus(chunker, data, maps, cut)
    return replace(made, data={"asked": len(known), "failed": failed})


def written_contexts(augmenter: LlmAugmenter, tasks: list[Task], answers: AnswerCache) -> list[str]:
    """Return the context that a language model wrote for each chunk; empty if that failed.

    Raises JudgeError if too many are missing.
    """
    known = stored(answers, augmenter, tasks)
    outcomes = [known[task] for task in tasks]
    few_enough(augmenter, outcomes, "chunks have no context")
    return [outcome.text if isinstance(outcome, Completion) else "" for outcome in outcomes]
