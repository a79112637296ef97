"""What holds for every format: options, the manifest, a missing source, queries that are documents."""

import hashlib
import shutil
from pathlib import Path

import pytest
from small_imports import Make, asked, loaded, refused, squad

from harness.core.errors import ConfigError, DataError
from harness.data.importers import Options, import_dataset
from harness.data.manifest import read_manifest


def test_self_hits_are_ignored_on_request(folder: Make) -> None:
    """By id, as BEIR does it for ArguAna and its like; the query is never given that document."""
    corpus = '{"_id": "a", "text": "Salt is good."}\n{"_id": "b", "text": "Salt is bad."}\n'
    files = {"corpus.jsonl": corpus, "queries.jsonl": '{"_id": "a", "text": "Salt is good."}\n'}
    source = folder({**files, "qrels/dev.tsv": "a\tb\t1\n"})
    plain = loaded("beir", source, "dev").query_set.queries[0]
    assert plain.ignore == ()
    shutil.rmtree(source.parent / "data")
    assert loaded("beir", source, "dev", ignore_self=True).query_set.queries[0].ignore == ("a",)


def test_options_without_a_use_are_refused(folder: Make) -> None:
    """Rather than silently passed over."""
    assert refused("squad", folder({"x.json": {}}), topic="desc") == "import squad does not use --topic"
    with pytest.raises(ConfigError, match="no such column. Did you mean 'query.text'"):
        Options(columns={"query.txt": "x"})
    with pytest.raises(ConfigError, match="expected a name of letters"):
        Options(name="../x")
    with pytest.raises(ConfigError, match="is not an encoding of text lines"):
        Options(encoding="utf-99")
    with pytest.raises(ConfigError, match="is not an encoding of text lines"):
        Options(encoding="utf-16")


def test_the_manifest_says_where_the_data_come_from(folder: Make) -> None:
    """Format, origin, licence, and the sha256 of every file that was read."""
    source = folder({"x.json": squad(("Salt.", [asked("q", ("Salt", 0))])), "other.txt": "x"})
    target = source.parent / "data"
    import_dataset("squad", source, target, licence="CC0", origin="https://example.org/x")
    manifest = read_manifest(target)
    assert (manifest.licence, manifest.source) == ("CC0", "https://example.org/x")
    digest = hashlib.sha256((source / "x.json").read_bytes()).hexdigest()
    assert manifest.imported["files"] == {"x.json": digest}


def test_a_missing_source(tmp_path: Path) -> None:
    """Is named."""
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        import_dataset("beir", tmp_path / "nowhere", tmp_path / "data")
    assert list(tmp_path.iterdir()) == []
