"""The task of every executor: make stages. Workers receive stages as JSON and a context, never pickled components."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from harness.components.roles import BaseReranker, Embedder
from harness.running.parcel import opened
from harness.running.stages.rerank import rescored
from harness.running.stages.stage_json import read_component, read_stage
from harness.running.stages.workspace import StageContext, Workspace, workspace_for
from harness.storage.model_outputs import Scored


class Work(NamedTuple):
    """Work done.

    `built` is the number of artifacts by stage (texts for `embed`), `written` their bytes, `damaged` the damaged files
    that were found.
    """

    built: dict[str, int]
    written: dict[str, int]
    damaged: list[str]

    def add(self, done: "Work") -> None:
        """Add other work."""
        for mine, others in ((self.built, done.built), (self.written, done.written)):
            for stage, count in others.items():
                mine[stage] = mine.get(stage, 0) + count
        self.damaged.extend(done.damaged)


class Done(NamedTuple):
    """A finished task: what it built and how long it took, in seconds."""

    work: Work
    seconds: float


class Timed(NamedTuple):
    """How long embedding took, in seconds, and the dimensions of the vectors."""

    seconds: float
    dimensions: int


class Rescored(NamedTuple):
    """A finished reranking task: the scores of each query's texts, in the order given, and how long it took."""

    scores: list[list[Scored]]
    seconds: float


def make_stages(stages: Sequence[str], context: StageContext) -> Done:
    """Make stages of one context, each with what it needs."""
    begin, here = time.perf_counter(), opened(context)
    work = workspace_for(here.context)
    with counted(work) as done:
        for text in stages:
            read_stage(_relocated(text, here.code)).make(work)
    return Done(done, time.perf_counter() - begin)


def embed_texts(embedder: str, texts: Sequence[str], context: StageContext, *, queries: bool) -> Done:
    """Embed texts that have no vector yet, and keep their vectors in the store. `embedder` is from `component_json`."""
    begin, here = time.perf_counter(), opened(context)
    work = workspace_for(here.context)
    model = cast(Embedder, read_component(_relocated(embedder, here.code)))
    with counted(work) as done:
        work.vectors.add(model, texts, queries=queries)
    return Done(done, time.perf_counter() - begin)


def time_embedding(embedder: str, blocks: Sequence[Sequence[str]], context: StageContext) -> Timed:
    """Embed blocks of texts to measure how long that takes, without loading the model. Nothing is stored."""
    here = opened(context)
    model = cast(Embedder, read_component(_relocated(embedder, here.code)))
    loaded = model.embed(list(blocks[0][:2]))
    begin = time.perf_counter()
    for block in blocks:
        model.embed(list(block))
    return Timed(time.perf_counter() - begin, loaded.vectors.shape[1])


def score_texts(reranker: str, by_query: Mapping[str, Sequence[str]], context: StageContext) -> Rescored:
    """Score texts for each query. `reranker` is from `component_json`. Nothing is stored."""
    begin, here = time.perf_counter(), opened(context)
    step = cast(BaseReranker, read_component(_relocated(reranker, here.code)))
    made = [list(scored.values()) for scored in rescored(step, by_query)]
    return Rescored(made, time.perf_counter() - begin)


def _relocated(text: str, code: Mapping[str, str]) -> str:
    """The JSON of a stage, with own source files where they are on this machine."""
    for original, path in code.items():
        text = text.replace(json.dumps(original)[1:-1], json.dumps(path)[1:-1])
    return text


@contextlib.contextmanager
def counted(work: Workspace) -> Iterator[Work]:
    """Count what is built in a workspace inside the block. The yielded Work is filled in when the block ends."""
    done = Work({}, {}, [])
    built, written = dict(work.store.built), dict(work.store.written)
    damaged, files = len(work.store.damaged), work.vectors.damaged
    yield done
    done.built.update(_grown(built, work.store.built))
    done.written.update(_grown(written, work.store.written))
    done.damaged.extend(work.store.damaged[damaged:])
    done.damaged.extend(["vectors"] * (work.vectors.damaged - files))


def _grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
