"""Evaluate retrieval: one YAML file becomes a scored grid of chunkers, retrievers and selectors in MLflow.

The public API is the list of imports below. What authors of components need besides is in `harness.components`.
"""

from typing import TYPE_CHECKING, Any

from harness.core.own_packages import require_own_packages
from harness.core.public_names import public_names

if TYPE_CHECKING:
    from harness.components.roles import Augmenter as Augmenter
    from harness.components.roles import Chunker as Chunker
    from harness.components.roles import Embedder as Embedder
    from harness.components.roles import Judge as Judge
    from harness.components.roles import Retriever as Retriever
    from harness.components.roles import Selector as Selector
    from harness.core.errors import ComponentError as ComponentError
    from harness.core.errors import ConfigError as ConfigError
    from harness.core.errors import DataError as DataError
    from harness.core.errors import HarnessError as HarnessError
    from harness.core.errors import JudgeError as JudgeError
    from harness.core.errors import StoreError as StoreError
    from harness.core.records import Chunk as Chunk
    from harness.core.records import Document as Document
    from harness.core.records import Drop as Drop
    from harness.core.records import Hit as Hit
    from harness.core.records import Outcome as Outcome
    from harness.core.records import Query as Query
    from harness.core.records import Spans as Spans
    from harness.data.annotation import add_query as add_query
    from harness.data.importers.registry import import_dataset as import_dataset
    from harness.experiment.experiment import Experiment as Experiment
    from harness.experiment.experiment import TrialSet as TrialSet
    from harness.experiment.part import part_of as part_of
    from harness.experiment.reader_price import Reader as Reader
    from harness.experiment.settings import Compare as Compare
    from harness.experiment.settings import Gate as Gate
    from harness.experiment.trial import Trial as Trial
    from harness.experiment.yaml_file import read_experiment as read_experiment
    from harness.running.launch import RunOptions as RunOptions
    from harness.running.launch_result import Launch as Launch
    from harness.running.models import Models as Models
    from harness.running.planning.plan import plan as plan
    from reports.compare import compare as compare
    from reports.comparison import Comparison as Comparison
    from reports.frames import scores_frame as scores_frame
    from reports.gate_result import GateResult as GateResult
    from reports.gate_run import accept_launch as accept_launch
    from reports.gate_run import gate as gate
    from reports.launch_files import launch_report as launch_report
    from reports.logged_run import run as run
    from reports.report import Report as Report
    from reports.report import report as report

_MOVED = {
    "Searched": "from harness.components import FusionContext",
    "scoring": "from harness.components import post_answer",
    **{
        name: f"from harness.components import {name}"
        for name in (
            *("Artifact", "Case", "Component", "Embedded", "EmbeddingChunker", "Fusion", "LlmAugmenter", "LlmChunker"),
            *("LlmJudge", "LlmReranker", "LocalJudge", "Rankings", "Reranker", "ScalesChunker", "Span", "Vectors"),
            *("allocate", "best_first", "best_hits_first", "runtime", "spanning"),
        )
    },
}
"""What to write instead of names that were here before version 0.2."""

_load, __dir__, __all__ = public_names(__name__, _MOVED)


def __getattr__(name: str) -> Any:
    if name in __all__:
        require_own_packages()
    return _load(name)
