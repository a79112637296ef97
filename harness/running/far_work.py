"""Embedding on workers of other machines: each distinct text once, in batches that last some seconds."""

from collections.abc import Sequence
from concurrent.futures import Future

from harness.components.roles import Embedder
from harness.running.executors import Engine
from harness.running.stages.embeddings import Progress
from harness.running.stages.stage import StoredStage
from harness.running.stages.stage_json import component_json, stage_json
from harness.running.stages.workspace import Workspace
from harness.running.task import Done, Work, embed_texts, make_stages

_SECONDS = 5.0
"""How long a batch should take: what a worker that dies loses, and what sending it costs, are small beside the rest."""
_FEWEST, _MOST = 64, 4096


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
    ) -> None:
        """Embed distinct texts without a vector; `advance` gets the lengths of those that are done."""
        left = sorted(texts, key=lambda text: (-len(text), text))
        # Every worker gets some, however few there are.
        size = max(1, min(_FEWEST, -(-len(left) // self._engine.workers)))
        context = self._engine.sent(work.context)
        made, running, at = component_json(embedder), dict[Future[Done], int](), 0
        seconds, characters = 0.0, 0
        while at < len(left) or running:
            while at < len(left) and len(running) < self._engine.at_once:
                batch = left[at : at + size]
                at += len(batch)
                future = self._engine.submit(embed_texts, made, batch, context, queries=queries, accelerated=True)
                running[future] = sum(map(len, batch))
            for future in self._engine.wait(running):
                length = running.pop(future)
                done = future.result()
                self._done.add(done.work)
                seconds, characters = seconds + done.seconds, characters + length
                advance(length)
            if seconds and at < len(left):
                mean = sum(map(len, left[at : at + _MOST])) / len(left[at : at + _MOST])
                size = int(min(_MOST, max(_FEWEST, _SECONDS * characters / seconds / max(1.0, mean))))

    def make(self, stage: object, work: Workspace) -> None:
        """Make a stored stage on a worker, if it is not made."""
        assert isinstance(stage, StoredStage)
        if not stage.done(work):
            future = self._engine.submit(make_stages, [stage_json(stage)], self._engine.sent(work.context))
            self._engine.wait([future])
            self._done.add(future.result().work)
