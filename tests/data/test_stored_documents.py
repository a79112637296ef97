"""Documents in the store: what is packed is what was written, in parts that are read as they are needed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import DataError
from harness.data import corpus, packing, stored_documents
from harness.data.corpus import HeldDocuments
from harness.data.dataset import StoredAt, load_dataset, read_corpus
from harness.data.manifest import read_manifest
from harness.data.stored_documents import StoredDocuments
from harness.storage.store import Store

RECORDS: list[dict[str, Any]] = [
    {"id": "plain", "text": "Salt the water."},
    {
        "id": "größer",
        "text": " Salt the water.\n",
        "title": "Wasser 水",
        "metadata": {"year": 2024, "tags": ["é", None]},
    },
    {"id": "empty", "text": ""},
    {"id": "emoji", "text": "🧂 and 水 and text " * 3, "title": "🧂"},
]


def packed(root: Path, store: Path) -> StoredDocuments:
    return StoredDocuments(Store(store), read_manifest(root).corpus)


@pytest.fixture(params=[10**9, 40], ids=["one part", "a part each"])
def root(request: pytest.FixtureRequest, make_data: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set whose documents are packed into one part, or into several."""
    monkeypatch.setattr(packing, "PART", request.param)
    return make_data(RECORDS, [{"id": "q", "text": "?"}])


def test_they_are_what_was_written(root: Path, tmp_path: Path) -> None:
    """By number, by id, in order, and again from the store without the corpus file."""
    held = HeldDocuments(read_corpus(read_manifest(root)))
    packed(root, tmp_path / "s").lengths  # noqa: B018 - packs them
    (root / "corpus.jsonl").unlink()
    documents = packed(root, tmp_path / "s")
    assert list(documents) == list(held) == documents[:]
    assert [doc.metadata for doc in documents] == [doc.metadata for doc in held]
    assert list(documents.ids) == [doc.id for doc in held]
    assert documents.lengths.tolist() == held.lengths.tolist()
    assert documents.text_digests.tolist() == held.text_digests.tolist()
    assert [documents.number[doc.id] for doc in held] == [0, 1, 2, 3]
    assert documents.by_id["größer"].title == "Wasser 水"
    assert "other" not in documents.by_id
    assert documents.equal_to(1) == held.equal_to(1) == [0, 1]


def test_few_documents_are_kept_in_memory(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a small corpus once they were read, none of a larger one."""
    for kept in (1000, 40):
        monkeypatch.setattr(stored_documents, "KEPT", kept)
        documents = packed(root, tmp_path / "s")
        assert [documents.text(number) for number in range(4)] == [record["text"] for record in RECORDS]
        assert documents._kept == {}
        assert [doc.id for doc in documents] == [record["id"] for record in RECORDS]
        assert [documents.text(number) for number in range(4)] == [record["text"] for record in RECORDS]
        assert len(documents._kept) == (4 if kept == 1000 else 0)


def test_a_damaged_part_is_packed_again(root: Path, tmp_path: Path) -> None:
    """The other parts are left alone."""
    whole = packed(root, tmp_path / "s")
    text = whole[3].text
    store = Store(tmp_path / "s")
    (last,) = [key for key in whole.keys if key.get("part") == max(key.get("part", 0) for key in whole.keys)]
    from harness.storage.digest import digest

    with (store.path(digest(last)) / "arrays.npz").open("r+b") as file:
        file.seek(300)
        file.write(b"\xff\xff\xff\xff")
    documents = StoredDocuments(store, read_manifest(root).corpus)
    assert documents[3].text == text
    assert store.built == {"document_part": 1}


def test_a_repeated_id_names_both_lines(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """As without a store."""
    root = make_data([RECORDS[0], RECORDS[2], {**RECORDS[1], "id": "plain"}], [{"id": "q", "text": "?"}])
    expected = r"corpus.jsonl:3: id 'plain' already occurs in line 1"
    with pytest.raises(DataError, match=expected):
        load_dataset(root, "validation")
    with pytest.raises(DataError, match=expected):
        packed(root, tmp_path / "s").lengths  # noqa: B018 - packs them


def test_ids_with_equal_digests_are_distinguished(
    make_data: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With digests that are all equal, everything is found, and nothing counts as repeated."""
    for module in (corpus, packing, stored_documents):
        monkeypatch.setattr(module, "short_digest", lambda text: 7)
    documents = packed(make_data(RECORDS, [{"id": "q", "text": "?"}]), tmp_path / "s")
    assert [documents.number[record["id"]] for record in RECORDS] == [0, 1, 2, 3]
    assert documents.equal_to(0) == [0, 1]
    with pytest.raises(KeyError):
        documents.number["other"]


def test_evidence_is_located_once(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """A second process finds it in the store, and finds the same."""
    text = "Salt the water until it tastes of the sea."
    evidence = [{"doc": "a", "start": 0, "end": len(text), "quote": text}]
    asked = [{"id": "q", "text": "?", "evidence": evidence}, {"id": "w", "text": "?", "evidence": [{"doc": "b"}]}]
    root = make_data([{"id": "a", "text": f"{text} Boil."}, {"id": "b", "text": text}], asked)
    expected = load_dataset(root, "validation").query_set.queries
    manifest = read_manifest(root)
    hashes = manifest.corpus.sha256, manifest.queries["validation"].sha256
    first = Store(tmp_path / "s")
    assert load_dataset(root, "validation", at=StoredAt(first, *hashes)).query_set.queries == expected
    assert first.built == {"documents": 1, "document_part": 1, "evidence": 1}
    again = Store(tmp_path / "s")
    shutil.move(root / "corpus.jsonl", root / "moved.jsonl")
    assert load_dataset(root, "validation", at=StoredAt(again, *hashes)).query_set.queries == expected
    assert again.built == {}
    assert json.dumps([len(item.places) for query in expected for item in query.evidence]) == "[2, 1]"
