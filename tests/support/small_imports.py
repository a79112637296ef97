"""Imports of a few lines: what is kept, and the one line with which a faulty source is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import HarnessError
from harness.core.records import Query, Span
from harness.data.dataset import Dataset, load_dataset
from harness.data.importers import Options, import_dataset

Make = Callable[[dict[str, Any]], Path]


def loaded(kind: str, source: Path, chosen: str = "validation", **options: Any) -> Dataset:
    target = source.parent / "data"
    import_dataset(kind, source, target, options=Options(**options))
    return load_dataset(target, chosen, copies="ignore", final=True)


def spans(query: Query) -> list[list[Span]]:
    return [list(item.places) for item in query.evidence]


def refused(kind: str, source: Path, **options: Any) -> str:
    """The one line an import is refused with; nothing is left of it."""
    target = source.parent / "data"
    with pytest.raises(HarnessError) as caught:
        import_dataset(kind, source, target, options=Options(**options))
    assert [path for path in source.parent.iterdir() if path != source] == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


def squad(*paragraphs: tuple[str, list[dict[str, Any]]], title: str = "Salt") -> dict[str, Any]:
    lines = [{"context": context, "qas": qas} for context, qas in paragraphs]
    return {"version": "x", "data": [{"title": title, "paragraphs": lines}]}


def asked(name: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"{name}?", "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}
