"""ContractNLI files on a few lines."""

from typing import Any

import pytest
from evidence_text import text_of
from small_imports import Make, loaded, refused, spans


def contract(**more: Any) -> dict[str, Any]:
    annotations = {"n1": {"choice": "Entailment", "spans": [1, 1]}, "n2": {"choice": "NotMentioned", "spans": []}}
    record = {"id": 3, "file_name": "x.pdf", "text": "Secrets\nKeep them.", "spans": [[0, 7], [8, 18]]}
    return {**record, "annotation_sets": [{"annotations": annotations}], **more}


LABELS = {name: {"hypothesis": f"Hypothesis {name}."} for name in ("n1", "n2")}


def test_contract_nli(folder: Make) -> None:
    """A query a pair, distinguished by the contract's title; what is not mentioned has no evidence."""
    data = loaded("contract-nli", folder({"dev.json": {"documents": [contract(), contract(id=4)], "labels": LABELS}}))
    one, two, *_ = data.query_set.queries
    assert (one.text, text_of(data, spans(one)[0][0])) == ("Secrets (contract-3): Hypothesis n1.", "Keep them.")
    assert (two.evidence, two.metadata["choice"]) == ((), "NotMentioned")


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (contract(spans=[[0]]), "documents[0]: spans[0]: expected start and end"),
        (contract(spans=[[0, 7]]), "annotations.n1.spans: the contract has spans 0 to 0, got [1, 1]"),
        (contract(annotation_sets=[]), "annotation_sets: expected one, got 0"),
        (contract(text=None), "text: expected text, got None"),
    ],
)
def test_contract_nli_faults(folder: Make, document: Any, what: str) -> None:
    """File, and place in it."""
    assert what in refused("contract-nli", folder({"dev.json": {"documents": [document], "labels": LABELS}}))
