"""Corpora in other forms: compressed, as Parquet, as a folder of shards, and at a URL."""

import functools
import gzip
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bucket_server import new_bucket, served, use

from harness.cli import main
from harness.core.errors import DataError
from harness.data.dataset import StoredAt, load_dataset
from harness.data.manifest import read_manifest, sha256_of, write_manifest
from harness.data.record_files import records, verify
from harness.storage.bucket import Bucket
from harness.storage.store import Store

RECORDS: list[dict[str, Any]] = [
    {"id": f"d{at}", "text": f"Salt the water, number {at}.", "metadata": {"year": 2000 + at}} for at in range(6)
]
QUERY = {"id": "q", "text": "How salty?", "evidence": [{"doc": "d4", "start": 0, "end": 4, "quote": "Salt"}]}


def zstandard(path: Path, content: bytes) -> None:
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(content)


def as_gzip(root: Path, content: bytes) -> str:
    (root / "corpus.jsonl.gz").write_bytes(gzip.compress(content))
    return "corpus.jsonl.gz"


def as_zstandard(root: Path, content: bytes) -> str:
    zstandard(root / "corpus.jsonl.zst", content)
    return "corpus.jsonl.zst"


def as_parquet(root: Path, _: bytes) -> str:
    rows = [{**record, "title": None} for record in RECORDS]
    pq.write_table(pa.Table.from_pylist(rows), root / "corpus.parquet", row_group_size=2)
    return "corpus.parquet"


def as_shards(root: Path, content: bytes) -> str:
    lines = content.splitlines(keepends=True)
    folder = root / "shards"
    (folder / "more").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(b"".join(lines[:2]))
    zstandard(folder / "b.jsonl.zst", lines[2])
    pq.write_table(pa.Table.from_pylist(RECORDS[3:]), folder / "more" / "c.parquet")
    (folder / "README.txt").write_text("not a shard")
    return "shards"


@pytest.mark.parametrize("form", [as_gzip, as_zstandard, as_parquet, as_shards])
def test_forms_of_a_corpus(form: Callable[[Path, bytes], str], make_data: Callable[..., Path], tmp_path: Path) -> None:
    """The same documents, in memory and in a store; a changed file is found by its hash."""
    root = make_data(RECORDS, [QUERY])
    expected = load_dataset(root, "validation")
    plain = root / "corpus.jsonl"
    name = form(root, plain.read_bytes())
    plain.unlink()
    manifest = (root / "manifest.yaml").read_text()
    start = manifest.index("corpus:")
    (root / "manifest.yaml").write_text(
        f"{manifest[:start]}corpus: {{file: {name}}}\n{manifest[manifest.index('queries:') :]}"
    )
    write_manifest(read_manifest(root))
    pinned = read_manifest(root)
    hashes = pinned.corpus.sha256, pinned.queries["validation"].sha256
    for data in (
        load_dataset(root, "validation"),
        load_dataset(root, "validation", at=StoredAt(Store(tmp_path), *hashes)),
    ):
        assert list(data.documents) == list(expected.documents)
        assert [doc.metadata for doc in data.documents] == [record["metadata"] for record in RECORDS]
        assert data.query_set == expected.query_set
    assert pinned.corpus.size > 100
    target = root / name if (root / name).is_file() else root / name / "a.jsonl"
    target.write_bytes(target.read_bytes() + b"\n")
    with pytest.raises(DataError, match="sha256 is"):
        verify(pinned.corpus)


def test_faults_name_their_place(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """The file of a folder and its line, the row of a table, and both places of a repeated id."""
    root = make_data(RECORDS, [QUERY])
    as_shards(root, (root / "corpus.jsonl").read_bytes())
    text = (root / "manifest.yaml").read_text().replace("corpus.jsonl", "shards")
    (root / "manifest.yaml").write_text("\n".join(line for line in text.splitlines() if "sha256" not in line))
    (root / "shards" / "z.jsonl").write_text('{"id": "d3", "text": "again"}\n')
    expected = r"z.jsonl:1: id 'd3' already occurs in .*c.parquet: row 1"
    with pytest.raises(DataError, match=expected):
        load_dataset(root, "validation")
    hashes = sha256_of(root / "shards"), sha256_of(root / "queries" / "validation.jsonl")
    with pytest.raises(DataError, match=expected):
        load_dataset(root, "validation", at=StoredAt(Store(tmp_path), *hashes))
    (root / "shards" / "z.jsonl").unlink()
    pq.write_table(
        pa.Table.from_pylist([{"id": "x", "text": "y"}, {"id": 7, "text": "z"}][1:]), root / "shards/z.parquet"
    )
    with pytest.raises(DataError, match=r"z.parquet: row 1: id: expected text, not 7"):
        load_dataset(root, "validation")
    (root / "shards" / "z.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"z.parquet: cannot be read: "):
        load_dataset(root, "validation")
    for path in (root / "shards").rglob("*"):
        path.unlink() if path.is_file() else None
    with pytest.raises(DataError, match=r"shards: contains no file of documents"):
        load_dataset(root, "validation")


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"no" + content])
def test_a_damaged_file(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """One line, for both compressions."""
    from harness.core.text_files import json_lines

    content = b"".join(b'{"id": "%d"}\n' % at for at in range(5000))
    zstandard(tmp_path / "a.jsonl.zst", content)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content))
    for name, kind in (("a.jsonl.zst", "Zstandard"), ("a.jsonl.gz", "gzip")):
        path = tmp_path / name
        assert sum(1 for _ in json_lines(path)) == 5000
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(DataError, match=rf"{name}:\d+: the {kind} file is damaged or cut short"):
            list(json_lines(path))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that serves a folder `web`, and what it was asked for."""
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    (tmp_path / "web").mkdir()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path / "web"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()


def at_url(root: Path, url: str) -> None:
    """A data set whose corpus is at a URL, and not pinned."""
    text = (root / "manifest.yaml").read_text().replace("file: corpus.jsonl", f"file: {url}")
    lines = text.splitlines()
    lines.pop(next(at for at, line in enumerate(lines) if "sha256" in line))
    (root / "manifest.yaml").write_text("\n".join(lines) + "\n")


def test_a_corpus_on_a_web_server(
    web: tuple[str, list[str]],
    make_data: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pinned by fetching it; fetched once; refused if it is another one, is not pinned, or cannot be had."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    address, asked = web
    root = make_data(RECORDS, [QUERY])
    served_file = tmp_path / "web" / "corpus.jsonl"
    (root / "corpus.jsonl").rename(served_file)
    at_url(root, f"{address}/corpus.jsonl")
    with pytest.raises(DataError, match="a file at a URL must be pinned; `harness data pin` fetches and pins it"):
        load_dataset(root, "validation")
    assert main(["data", "pin", str(root)]) == 0
    assert read_manifest(root).corpus.url == f"{address}/corpus.jsonl"
    for _ in range(2):
        assert len(load_dataset(root, "validation").documents) == 6
    assert asked == ["/corpus.jsonl"]
    read_manifest(root).corpus.path.unlink()
    served_file.write_text('{"id": "other", "text": "x"}\n')
    with pytest.raises(DataError, match=rf"^{address}/corpus.jsonl: sha256 is .* but the manifest pins"):
        load_dataset(root, "validation")
    read_manifest(root).corpus.path.unlink()
    served_file.unlink()
    with pytest.raises(DataError, match=rf"^{address}/corpus.jsonl: the server answered 404$"):
        load_dataset(root, "validation")
    assert not list((tmp_path / "cache").rglob("*.jsonl*"))
    at_closed = (root / "manifest.yaml").read_text().replace(address, "http://127.0.0.1:9")
    (root / "manifest.yaml").write_text(at_closed)
    with pytest.raises(DataError, match=r"^http://127.0.0.1:9/corpus.jsonl: cannot be fetched \(.*\)$"):
        load_dataset(root, "validation")


def test_a_corpus_in_a_bucket(make_data: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetched with the keys of the environment."""
    with served() as address:
        use(monkeypatch, address, tmp_path / "cache")
        url = new_bucket(address)
        root = make_data(RECORDS, [QUERY])
        Bucket(url).create("corpus.jsonl", (root / "corpus.jsonl").read_bytes())
        (root / "corpus.jsonl").unlink()
        at_url(root, f"{url}/corpus.jsonl")
        assert main(["data", "pin", str(root)]) == 0
        read_manifest(root).corpus.path.unlink()
        assert len(load_dataset(root, "validation").documents) == 6
        at_url(root, f"{url}/none.jsonl")
        with pytest.raises(DataError, match="must be pinned"):
            load_dataset(root, "validation")


def test_progress_of_compressed_files(tmp_path: Path) -> None:
    """All bytes of a file are counted, also by a reader that closes it at its end."""
    lines = b"".join(b'{"id": "d%d"}\n' % at for at in range(1000))
    for name, content in (
        ("a.jsonl", lines),
        ("a.jsonl.gz", gzip.compress(lines)),
        ("a.jsonl.zst", pa.compress(lines, "zstd", asbytes=True)),
    ):
        (tmp_path / name).write_bytes(content)
        seen: list[int] = []
        assert len(list(records(tmp_path / name, seen.append))) == 1000
        assert sum(seen) == len(content)
