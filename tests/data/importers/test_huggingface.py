"""Data sets of the Hugging Face Hub, from a local folder."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of
from small_imports import Make, loaded, refused, spans

from harness.core.errors import DataError
from harness.data.importers import import_dataset
from harness.data.manifest import read_manifest


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_huggingface_retrieval_tables(tmp_path: Path) -> None:
    """As BEIR and MTEB have them on the Hub: configurations corpus and queries, judgments by split."""
    source = tmp_path / "source"
    parquet(source / "corpus/corpus/0000.parquet", [{"_id": "a", "title": "T", "text": "x"}])
    parquet(source / "corpus/corpus/0001.parquet", [{"_id": "b", "title": "", "text": "y"}])
    parquet(source / "queries/queries-00000-of-00001.parquet", [{"_id": "q", "text": "?"}])
    parquet(source / "default/test/0000.parquet", [{"query-id": "q", "corpus-id": "b", "score": 1.0}])
    parquet(source / "default/dev/0000.parquet", [{"query-id": "q", "corpus-id": "a", "score": 2.0}])
    data = loaded("huggingface", source, "test")
    assert [doc.text for doc in data.documents] == ["T\n\nx", "y"]
    assert data.query_set.queries[0].evidence[0].places[0].doc == "b"
    assert not read_manifest(data.root).queries["test"].locked  # published figures are measured on it


def test_huggingface_squad_and_hotpotqa(tmp_path: Path) -> None:
    """By their columns, from Parquet and from what `save_to_disk` writes."""
    import pyarrow as pa

    rows = [
        {
            "id": "1",
            "title": "Salt",
            "context": "Salt is white.",
            "question": "Q1?",
            "answers": {"text": ["white"], "answer_start": [8]},
        },
        {"id": "2", "title": "Salt", "context": "Sea.", "question": "Q2?", "answers": {"text": [], "answer_start": []}},
    ]
    source = tmp_path / "source"
    (source / "train").mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    with (
        pa.OSFile(str(source / "train/data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as out,
    ):
        out.write_table(table)
    (source / "train/dataset_info.json").write_text("{}")
    parquet(source / "dev-00000-of-00001.parquet", [{**rows[1], "id": "3"}])
    data = loaded("huggingface", source, "train")
    # An article of which both splits have paragraphs is a document in each.
    assert [(doc.id, doc.text) for doc in data.documents] == [("Salt", "Sea."), ("Salt (2)", "Salt is white.\n\nSea.")]
    one, two = data.query_set.queries
    assert (text_of(data, spans(one)[0][0]), two.evidence) == ("white", ())
    hops = tmp_path / "hops"
    parquet(
        hops / "source/data/validation-00000-of-00001.parquet",
        [
            {
                "id": "h",
                "question": "Why?",
                "answer": "x",
                "context": {"title": ["Sea"], "sentences": [["It is salty.", " It is wet."]]},
                "supporting_facts": {"title": ["Sea"], "sent_id": [1]},
            }
        ],
    )
    data = loaded("huggingface", hops / "source")
    assert text_of(data, spans(data.query_set.queries[0])[0][0]) == "It is wet."


def test_huggingface_columns_of_ones_own(tmp_path: Path) -> None:
    """Tables by name."""
    source = tmp_path / "source"
    parquet(source / "docs/train/0000.parquet", [{"key": "a", "body": "Salt is white."}])
    parquet(source / "asked/train/0000.parquet", [{"question": "Colour?", "key": "a", "quote": "white"}])
    columns = {"doc.id": "key", "doc.text": "body", "evidence.doc": "key"}
    data = loaded("huggingface", source, corpus="docs/train", queries={"": "asked/train"}, columns=columns)
    assert text_of(data, spans(data.query_set.queries[0])[0][0]) == "white"


def test_huggingface_odd_columns(tmp_path: Path) -> None:
    """Dates, bytes and missing numbers in other columns; untitled contexts are documents of their own."""
    import datetime

    rows = [
        {
            "id": at,
            "context": context,
            "question": f"Q{at}?",
            "answers": {"text": ["It"], "answer_start": [0]},
            "when": datetime.date(2020, 1, 1),
            "raw": b"\x00",
            "score": float("nan"),
        }
        for at, context in enumerate(("It is.", "It was.", "It is."))
    ]
    source = tmp_path / "source"
    parquet(source / "train-00000-of-00001.parquet", rows)
    data = loaded("huggingface", source, "train")
    assert [doc.text for doc in data.documents] == ["It is.", "It was."]
    shutil.rmtree(data.root)
    parquet(
        source / "train-00000-of-00001.parquet", [{**rows[0], "answers": {"text": ["It", "x"], "answer_start": [0]}}]
    )
    assert "answers: 2 texts and 1 answer_start" in refused("huggingface", source)
    (source / "train-00000-of-00001.parquet").unlink()
    parquet(source / "corpus.parquet", [{"_id": 1, "text": "x", "when": datetime.date(2020, 1, 1)}])
    parquet(source / "queries.parquet", [{"_id": 7, "text": "?"}])
    parquet(source / "qrels/dl-2019.parquet", [{"query-id": 7, "corpus-id": 1, "score": 1}])
    parquet(source / "qrels/dl-2020.parquet", [{"query-id": 7, "corpus-id": 1, "score": 2}])
    data = loaded("huggingface", source, "dl-2019")
    assert sorted(read_manifest(data.root).queries) == ["dl-2019", "dl-2020"]


def test_huggingface_configurations_with_the_same_split(tmp_path: Path) -> None:
    """Are refused by name; a name with dots is one name."""
    source = tmp_path / "source"
    row = {"id": "1", "context": "It is.", "question": "?", "answers": {"text": ["It"], "answer_start": [0]}}
    for name in ("en", "de"):
        parquet(source / name / "validation-00000-of-00001.parquet", [row])
    assert "de/validation and en/validation are both a split 'validation'" in refused("huggingface", source)
    shutil.rmtree(source)
    parquet(source / "squad.train.parquet", [row])
    parquet(source / "squad.dev.parquet", [{**row, "id": "2"}])
    data = loaded("huggingface", source, "squad.dev")
    assert sorted(read_manifest(data.root).queries) == ["squad.dev", "squad.train"]


def test_huggingface_faults(folder: Make, tmp_path: Path) -> None:
    """What is no data set, what is not recognized, a damaged file, a name the Hub cannot be asked for."""
    source = folder({"x.parquet": b"PAR1 nonsense"})
    assert "x.parquet: cannot be read" in refused("huggingface", source)
    (source / "x.parquet").unlink()
    parquet(source / "y.parquet", [{"a": 1}])
    assert "not recognized by its columns (y: a)" in refused("huggingface", source)
    with pytest.raises(DataError, match="nowhere: no such folder; data sets on the Hub have names like"):
        import_dataset("huggingface", "nowhere", tmp_path / "data")
    with pytest.raises(DataError, match="cannot be downloaded from the Hub"):
        import_dataset("huggingface", "no/such", tmp_path / "data")
