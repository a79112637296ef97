"""A small experiment with judges, and a model that grades by a rule."""

from pathlib import Path
from typing import Any

from openai_server import Asked, grade_all

from harness import Experiment, Trial
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.components.selectors import TopK
from judges import ContextPrecision, ContextRecall

PRICE = (1.0, 2.0)


def behave(asked: Asked) -> Any:
    """Grade passages by their length; find no item."""
    if asked.slots[0].startswith("g"):
        return {slot: {"status": "none", "slots": [], "quote": ""} for slot in asked.slots}
    return grade_all(asked, lambda _, text: len(text) % 4)


def study(base_dir: Path, *judges: Any, grid: Any = None, **settings: Any) -> Experiment:
    base = Trial(
        "garden",
        Fixed(20),
        BM25(),
        tokenizer="words",
        selector=(TopK(k=4),),
        judges=judges or (ContextPrecision("m", batch=4), ContextRecall("m")),
        metrics=("recall@3",),
    )
    return Experiment("judged", base, grid or {"selector.k": [2, 4, 6]}, base_dir=base_dir, **settings)
