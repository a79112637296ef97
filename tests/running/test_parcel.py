"""What workers on other machines get, and what they check before any work."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from project import FIRST

from harness import Experiment, read_experiment
from harness.core.errors import HarnessError
from harness.running import parcel
from harness.running.parcel import fault, opened, pack
from harness.running.session import Session
from harness.running.stages.workspace import StageContext

OWN = (
    "from dataclasses import dataclass\nfrom harness import Chunker\n\n\n@dataclass(frozen=True)\nclass All(Chunker):\n"
)
OWN += "    def split(self, doc):\n        return [(0, len(doc.text))]\n"


@pytest.fixture
def experiment(garden_data: Path, tmp_path: Path) -> Experiment:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "x.yaml").write_text(FIRST.replace("{fixed: {size: 20}}", "own.py:All"))
    return read_experiment(tmp_path / "x.yaml")


@pytest.fixture
def context(experiment: Experiment, tmp_path: Path) -> Iterator[StageContext]:
    """The context that workers get, of a store that they see."""
    session = Session(experiment, tmp_path / "store")
    address = pack(session.store, session.manifest, session.trials)
    yield session.context(session.trials[0])._replace(parcel=address)
    parcel._opened.cache_clear()


def test_a_machine_with_everything_uses_its_own_files(context: StageContext, tmp_path: Path) -> None:
    """Nothing is copied."""
    found = opened(context)
    assert found.context == context._replace(parcel="")
    assert found.code == {str(tmp_path / "own.py"): str(tmp_path / "own.py")}
    assert fault(context) == ""


def test_a_machine_with_nothing_gets_all_from_the_store(context: StageContext, tmp_path: Path) -> None:
    """Queries and own code, with the same content; workers read what they need of the corpus from the store."""
    shutil.move(tmp_path / "datasets", tmp_path / "away")
    (tmp_path / "own.py").unlink()
    found = opened(context)
    names = {path.relative_to(found.context.root).as_posix() for path in Path(found.context.root).rglob("*.*")}
    assert names == {"manifest.yaml", "queries/validation.jsonl"}
    for name in names:
        assert Path(found.context.root, name).read_bytes() == (tmp_path / "away/garden" / name).read_bytes()
    (code,) = found.code.values()
    assert Path(code).read_text() == OWN


def test_another_version(context: StageContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a library that decides numbers, one that is missing, and another Python; a patch release does not matter."""
    versions = parcel.deciding_versions()
    monkeypatch.setattr(parcel, "deciding_versions", lambda: {**versions, "numpy": "1.0"})
    assert fault(context) == f"numpy is 1.0, but {versions['numpy']} in the launching process; install the same version"
    without = {name: version for name, version in versions.items() if name != "PyStemmer"}
    monkeypatch.setattr(parcel, "deciding_versions", lambda: without)
    assert fault(context).startswith("PyStemmer is missing, but")
    monkeypatch.setattr(parcel, "deciding_versions", lambda: versions)
    monkeypatch.setattr(parcel.platform, "python_version", lambda: "3.8.1")
    assert fault(context).startswith("Python is 3.8, but 3.1")
    monkeypatch.setattr(parcel.platform, "python_version", lambda: "{}.{}.99".format(*sys.version_info))
    assert fault(context) == ""


def test_other_content(context: StageContext, tmp_path: Path) -> None:
    """Data that changed in place; own code that did is replaced by what was sent."""
    (tmp_path / "own.py").write_text("raise RuntimeError\n")
    (code,) = opened(context).code.values()
    assert Path(code).read_text() == OWN
    parcel._opened.cache_clear()
    queries = Path(context.root, "queries", "validation.jsonl")
    queries.write_text(queries.read_text() + "\n")
    assert fault(context).startswith(f"data {queries}: is not the file of the launching process; copy that one")


def test_another_store(context: StageContext, tmp_path: Path) -> None:
    """One that does not have what was sent."""
    other = context._replace(store=str(tmp_path / "other"))
    with pytest.raises(HarnessError, match="is not the store of the launching process; share a disk, or use s3://"):
        opened(other)


def test_own_code_of_all_trials_is_sent(experiment: Experiment, tmp_path: Path) -> None:
    """Each file once, also if only a part of a component is own."""
    session = Session(replace(experiment, grid={}), tmp_path / "store")
    address = pack(session.store, session.manifest, [*session.trials, *session.trials])
    content = json.loads((session.store / parcel.FOLDER / address).read_text())
    assert list(content["code"]) == [str(tmp_path / "own.py")]
    assert content["references"] == []
    assert pack(session.store, session.manifest, session.trials) == address
