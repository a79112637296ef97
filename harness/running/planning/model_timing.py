"""Times models on a few texts, to estimate how long all will take."""

import contextlib
import math

from harness.components.roles import BaseReranker
from harness.core.errors import HarnessError
from harness.core.progress import progress
from harness.running.executors import Engine
from harness.running.stages.embed import TextsToEmbed, pace_kind
from harness.running.stages.rerank import rerank_pace
from harness.running.stages.stage_json import component_json
from harness.running.task import score_texts, time_embedding
from harness.running.trial_outputs import TrialOutputs
from harness.storage.paces import Paces

_BLOCKS, _BLOCK = 4, 24
"""How many texts are embedded: blocks of texts of similar length, as in a run."""
_TEXTS = 16
"""How many texts are reranked for each of a few queries."""


def time_embedder(wanted: TextsToEmbed, paces: Paces, engine: Engine) -> int | None:
    """Measure an embedder on a few of the texts, and keep its pace until a launch measures it better.

    Returns the dimensions of the vectors; None if there are no texts, or the embedder fails: the run reports that.
    """
    embedder, texts = wanted.embedder, wanted.documents
    ordered = sorted(texts or wanted.queries, key=len)
    if not ordered:
        return None
    size = min(_BLOCK, math.ceil(len(ordered) / _BLOCKS))
    starts = [(2 * at + 1) * (len(ordered) - size) // (2 * _BLOCKS) for at in range(_BLOCKS)]
    blocks = [ordered[start : start + size] for start in starts]
    kind, context = pace_kind(embedder), engine.sent(wanted.work.context)
    with contextlib.suppress(HarnessError, OSError), progress(f"measure {wanted.label}", _BLOCKS * _BLOCK) as advance:
        done = engine.submit(time_embedding, component_json(embedder), blocks, context, accelerated=True).result()
        advance(_BLOCKS * _BLOCK)
        paces.note(kind, sum(len(text) for block in blocks for text in block), done.seconds)
        paces.note(f"dimensions {kind}", 1, done.dimensions)
        paces.save()
        return int(done.dimensions)
    return None


def time_reranker(step: BaseReranker, outputs: TrialOutputs, paces: Paces, engine: Engine) -> None:
    """Measure a reranker on a few of a trial's queries and chunks, and note its pace."""
    texts = [chunk.text for chunk in outputs.some_chunks(_TEXTS)]
    by_query = dict.fromkeys(outputs.work.query_texts[:_BLOCKS], texts)
    context = engine.sent(outputs.work.context)
    with contextlib.suppress(HarnessError, OSError):
        done = engine.submit(score_texts, component_json(step), by_query, context, accelerated=True).result()
        scored = [one for row in done.scores for one in row]
        paces.note(rerank_pace(step), len(scored), sum(one.ms for one in scored) / 1000)
