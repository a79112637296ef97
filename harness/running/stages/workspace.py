"""What stages work with in one process: the data, the store, the caches of model outputs, and what was used lately."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from harness.core.records import Document, Query
from harness.core.tokenizer import Tokenizer, use_bundled_ranks
from harness.data.dataset import Dataset, StoredAt, load_dataset
from harness.data.manifest import Copies, read_manifest
from harness.data.record_files import verify
from harness.llm import AnswerCache
from harness.running.stages.embeddings import Embeddings
from harness.storage.bucket import local_folder
from harness.storage.model_outputs import ScoreCache
from harness.storage.store import Store
from harness.storage.system_answers import SystemAnswers
from harness.storage.vector_shards import VectorShards

ANSWERS = "answers.sqlite"
"""The file of the answer cache in the store."""

_KEPT = 4
"""Corpora kept in memory of each kind, each about as large as the documents. Trials of one chunking are neighbours."""

Kept = TypeVar("Kept")


class StageContext(NamedTuple):
    """What a process needs besides a stage to run it. Plain values, so that any executor can send it.

    The hashes and the tokenizer's identity distinguish the current files from earlier versions, for a process that
    keeps running after a file was edited.
    """

    root: str
    corpus_sha256: str
    queries: str
    queries_sha256: str
    tokenizer: str
    tokenizer_identity: str
    copies: Copies
    store: str
    final: bool
    limit: int | None = None
    parcel: str = ""
    """For a worker on another machine: the address of what it needs of this one; see `harness.running.parcel`."""


class Workspace:
    """The data and the store of one context. Not thread-safe: each thread needs its own; see `workspace_for`.

    Data are loaded when a stage first needs them: if all scores are stored, the corpus is never read.
    """

    def __init__(self, context: StageContext) -> None:
        # Called here because every worker process creates a workspace, and third-party splitters use tiktoken too.
        use_bundled_ranks()
        self.context = context
        self.tokenizer = Tokenizer(context.tokenizer)
        folder = local_folder(context.store)
        self.store = Store(folder)
        self.vectors = Embeddings(VectorShards(folder / "vectors"), self.store.built)
        self.answers = AnswerCache(folder / ANSWERS)
        self.scored = ScoreCache(folder / "scores.sqlite")
        self.systems = SystemAnswers(folder / "systems.sqlite")
        self.returned: dict[str, Document] = {}
        """Passages that other systems have returned and that are not in the corpus, by id."""
        self._kept: dict[str, OrderedDict[str, Any]] = {}

    @cached_property
    def data(self) -> Dataset:
        """The documents and the query set."""
        context = self.context
        at = StoredAt(self.store, context.corpus_sha256, context.queries_sha256)
        root = Path(context.root)
        return load_dataset(
            root, context.queries, copies=context.copies, final=context.final, limit=context.limit, at=at
        )

    @property
    def queries(self) -> Sequence[Query]:
        """The queries, in the order of the query set."""
        return self.data.query_set.queries

    @cached_property
    def query_texts(self) -> list[str]:
        """The text of each query."""
        return [query.text for query in self.queries]

    def run_file(self, name: str) -> Path:
        """The path of a recorded run in the data set's manifest. Raises DataError if the file is not as pinned."""
        pinned = read_manifest(Path(self.context.root)).run(name)
        verify(pinned)
        return pinned.path

    def text(self, doc: str, start: int, end: int) -> str:
        """The text of a span of a document, or of a passage that is not in the corpus."""
        known = self.returned.get(doc) or self.data.by_id[doc]
        return known.text[start:end]

    def kept(self, kind: str, address: str, make: Callable[[], Kept], limit: int = _KEPT) -> Kept:
        """Return what `make` returned for this address; made again if `limit` others of its kind were used since."""
        known = self._kept.setdefault(kind, OrderedDict())
        if address not in known:
            known[address] = make()
            if len(known) > limit:
                known.popitem(last=False)
        known.move_to_end(address)
        return cast(Kept, known[address])


_local = threading.local()


def workspace_for(context: StageContext) -> Workspace:
    """Return this thread's workspace for a context, created if needed. Threads never share workspaces."""
    known: dict[StageContext, Workspace] = _local.__dict__.setdefault("workspaces", {})
    if context not in known:
        known[context] = Workspace(context)
    return known[context]
