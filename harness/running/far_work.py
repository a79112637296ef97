"""Models on workers of other machines: each distinct text embedded once, each pair scored once, in short batches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

from harness.components.roles import BaseReranker, Embedder
from harness.core.progress import progress
from harness.core.sequences import blocks
from harness.running.executors import Engine
from harness.running.stages.embeddings import SORTED, Progress
from harness.running.stages.rerank import pair_namespace
from harness.running.stages.stage import StoredStage
from harness.running.stages.stage_json import component_json, stage_json
from harness.running.stages.workspace import Workspace
from harness.running.task import Work, embed_texts, make_stages, score_texts

_SECONDS = 10.0
"""How long a batch should take: what a worker that dies loses, and what sending it costs, are small beside the rest."""
_TEXTS = 512
"""The fewest texts in a batch: a model takes 8 of one length at a time, and fills up what is missing.

On SciFact, with 64 texts, that is 35 % more work than in the larger batches of one machine; 9 % with 256, 4 % with 512.
"""


class _Timed(Protocol):
    @property
    def seconds(self) -> float: ...


Item = TypeVar("Item")
Result = TypeVar("Result", bound=_Timed)


class FarWork:
    """Has an engine's workers do what a single machine does in the launching process; `done` collects what they did."""

    def __init__(self, engine: Engine, done: Work) -> None:
        self._engine, self._done = engine, done

    def embed(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        work: Workspace,
        *,
        queries: bool,
        advance: Progress,
    ) -> float:
        """Embed distinct texts without a vector; `advance` gets the lengths of those that are done.

        Returns the seconds of all workers together.
        """
        seconds = 0.0
        made, context = component_json(embedder), self._engine.sent(work.context)
        for block in blocks(texts, SORTED):
            batches = self._spread(
                sorted(block, key=lambda text: (-len(text), text)),
                lambda batch: self._engine.submit(embed_texts, made, batch, context, queries=queries, accelerated=True),
                size=len,
                fewest=_TEXTS,
                most=4096,
            )
            for batch, done in batches:
                self._done.add(done.work)
                seconds += done.seconds
                advance(sum(map(len, batch)))
        return seconds

    def score(self, step: BaseReranker, by_query: Mapping[str, Sequence[str]], work: Workspace) -> float:
        """Compute the scores of texts by query that have none yet, and keep them in the cache of this machine.

        Returns the seconds of all workers together.
        """
        seconds = 0.0
        made, context, place = component_json(step), self._engine.sent(work.context), pair_namespace(step)
        batches = self._spread(
            list(by_query),
            lambda batch: self._engine.submit(
                score_texts, made, {query: by_query[query] for query in batch}, context, accelerated=True
            ),
            size=lambda query: sum(map(len, by_query[query])),
            fewest=1,
            most=256,
        )
        with progress(step.name(), len(by_query), unit="queries") as advance:
            for batch, done in batches:
                found = zip(batch, done.scores, strict=True)
                rows = ((query, zip(by_query[query], scores, strict=True)) for query, scores in found)
                work.scored.put(place, {(query, text): one for query, pairs in rows for text, one in pairs})
                seconds += done.seconds
                advance(len(batch))
        return seconds

    def _spread(
        self,
        items: Sequence[Item],
        submit: Callable[[Sequence[Item]], Future[Result]],
        *,
        size: Callable[[Item], int],
        fewest: int,
        most: int,
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """Yield batches of items with their results, as they are finished.

        A batch has `fewest` to `most` items, as many as take about _SECONDS by what is finished; `size` is what the
        time of an item is in proportion to.
        """
        # Every worker gets two batches, however few items there are: the first ones are the longest.
        count = max(1, min(fewest, -(-len(items) // (2 * self._engine.workers))))
        running, at = dict[Future[Result], Sequence[Item]](), 0
        seconds, finished = 0.0, 0
        while at < len(items) or running:
            while at < len(items) and len(running) < self._engine.at_once:
                batch = items[at : at + count]
                at += len(batch)
                running[submit(batch)] = batch
            for future in self._engine.wait(running):
                batch = running.pop(future)
                result = future.result()
                seconds, finished = seconds + result.seconds, finished + sum(map(size, batch))
                yield batch, result
            if seconds and at < len(items):
                following = items[at : at + most]
                mean = max(1.0, sum(map(size, following)) / len(following))
                count = int(min(most, max(fewest, _SECONDS * finished / seconds / mean)))

    def make(self, stage: object, work: Workspace) -> None:
        """Make a stored stage on a worker, if it is not made."""
        assert isinstance(stage, StoredStage)
        if not stage.done(work):
            future = self._engine.submit(make_stages, [stage_json(stage)], self._engine.sent(work.context))
            self._engine.wait([future])
            self._done.add(future.result().work)
