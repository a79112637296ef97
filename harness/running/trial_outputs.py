"""What the stages of a trial made, read from the store; anything missing or damaged is made again."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.core.records import Case, Chunk, Ints, Query
from harness.data.dataset import Dataset
from harness.running.stages.passages import Passages
from harness.running.stages.selections import Selections
from harness.running.stages.trial_stages import TrialStages
from harness.running.stages.workspace import Workspace
from harness.storage.store import Artifact


@dataclass(frozen=True, eq=False)
class TrialOutputs:
    """The outputs of one trial's stages, in one process."""

    stages: TrialStages
    work: Workspace

    @property
    def data(self) -> Dataset:
        """The documents and the query set."""
        return self.work.data

    @property
    def queries(self) -> list[Query]:
        """The queries."""
        return list(self.work.queries)

    @property
    def passages(self) -> Passages:
        """The chunked and augmented corpus."""
        return self.stages.corpus.passages(self.work)

    @property
    def rankings(self) -> Artifact:
        """The output of the retrieve stage."""
        return self.stages.rankings.read(self.work)

    @property
    def selection(self) -> Artifact:
        """The output of the select stage."""
        return self.stages.selection.read(self.work)

    @property
    def selections(self) -> Selections:
        """The passages kept and dropped, one record per query."""
        return self.stages.selection.selections(self.work)

    @property
    def scores(self) -> Artifact:
        """The output of the score stage."""
        return self.stages.scores.read(self.work)

    def stored(self) -> dict[str, bool]:
        """Return, by stage, whether the output is stored."""
        return {name: stage.done(self.work) for name, stage in self.stages.by_name.items()}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one record per query; see `Score.rows`."""
        return self.stages.scores.rows(self.work)

    def cases(self) -> Iterator[Case]:
        """Yield what judges see of each query: the query, the text of its evidence, and the selected passages."""
        text, selections = self.work.text, self.selections
        for at, query in enumerate(self.queries):
            evidence = tuple(text(*item.places[0]) for item in query.evidence if not item.whole)
            passages = tuple(Chunk(p.doc, p.start, p.end, text(p.doc, p.start, p.end)) for p in selections.kept(at))
            # Judges treat two Unicode forms of the same query as one.
            yield Case(replace(query, text=unicodedata.normalize("NFC", query.text)), evidence, passages)

    def longest_chunks(self, count: int) -> list[Chunk]:
        """Return the `count` longest chunks of the corpus, measured in characters, without contexts."""
        arrays = self.stages.chunks.read(self.work).arrays
        return self._chunks(np.argsort(arrays["start"] - arrays["end"], kind="stable")[:count])

    def some_chunks(self, count: int) -> list[Chunk]:
        """Return `count` chunks from all parts of the corpus, without contexts; fewer if there are not so many."""
        total = len(self.stages.chunks.read(self.work).arrays["doc"])
        return self._chunks(np.unique(np.linspace(0, total - 1, min(count, total)).astype(np.int64)))

    def _chunks(self, numbers: Ints) -> list[Chunk]:
        arrays = self.stages.chunks.read(self.work).arrays
        documents = self.stages.chunks.documents(self.work)
        ids = (documents.ids[number] for number in arrays["doc"][numbers].tolist())
        places = zip(ids, arrays["start"][numbers].tolist(), arrays["end"][numbers].tolist(), strict=True)
        return [Chunk(doc, start, end, self.work.text(doc, start, end)) for doc, start, end in places]
