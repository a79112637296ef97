"""From names in YAML to checked components, and the message of every fault."""

from pathlib import Path
from typing import Any

import pytest

from harness.components.chunkers import Fixed
from harness.components.component import identity
from harness.components.embedders import Api, Local
from harness.components.retrievers import BM25, Hybrid
from harness.core.errors import ComponentError, ConfigError
from harness.experiment.catalog import component, to_spec

GOOD = '''"""One."""
from dataclasses import dataclass
from harness import Chunker, Document, Spans

@dataclass(frozen=True)
class Halves(Chunker):
    """Cut a document into `parts` equal parts."""
    parts: int = 2

    def split(self, doc: Document) -> Spans:
        step = max(1, len(doc.text) // self.parts)
        return [(at, min(at + step, len(doc.text))) for at in range(0, len(doc.text), step)]

@dataclass
class Soft(Chunker):
    def split(self, doc: Document) -> Spans:
        return []

@dataclass(frozen=True)
class Undone(Chunker):
    pass

class NoChunker:
    pass
'''


def made(spec: Any, role: str = "chunker", base_dir: Path = Path()) -> Any:
    return component(role, spec, where="x.yaml: grid.chunker[1]", base_dir=base_dir)


def test_ways_to_write_a_component() -> None:
    """A name, a name without settings, a name with settings; a list for a tuple."""
    assert made("fixed") == made({"fixed": None}) == made({"fixed": {}}) == Fixed()
    assert made({"fixed": {"size": 7}}) == Fixed(7)
    assert made({"recursive": {"separators": ["\n"]}}).separators == ("\n",)
    assert made(None, "augmenter").name() == "none"


def test_nested_components_are_settings() -> None:
    """A nested mapping is checked just as strictly."""
    hybrid = made({"hybrid": {"bm25": {"k1": 1.2}}}, "retriever")
    assert hybrid == Hybrid(bm25=BM25(k1=1.2))
    with pytest.raises(ConfigError, match="hybrid has no setting 'bm25.k2'"):
        made({"hybrid": {"bm25": {"k2": 1.2}}}, "retriever")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "recursve",
            "x.yaml: grid.chunker[1]: no chunker named 'recursve'. Did you mean 'recursive'? Built in: fixed, sentence",
        ),
        (
            {"recursive": {"overlp": 1}},
            "grid.chunker[1].recursive: recursive has no setting 'overlp'. Did you mean 'overlap'? Settings:",
        ),
        ({"fixed": {"size": "512"}}, 'grid.chunker[1].fixed: size: input should be a valid integer, got "512"'),
        ({"fixed": {"size": 0}}, "size: input should be greater than 0, got 0"),
        ({"fixed": {"size": 1.5}}, "size: input should be a valid integer"),
        ({"fixed": {"size": True}}, "size: input should be a valid integer"),
        ({"fixed": {"size": 9, "overlap": 9}}, "overlap 9 must be smaller than size 9"),
        ({"fixed": {"unit": "words"}}, "unit: input should be 'tokens' or 'characters', got \"words\""),
        ({"fixed": 512}, "fixed: expected a mapping of settings, got 512"),
        ({"fixd": 512}, "no chunker named 'fixd'. Did you mean 'fixed'?"),
        (512, "expected a name or {name: {setting: value}}"),
        ({"fixed": {}, "sentence": {}}, "expected a name or {name: {setting: value}}"),
        ({"fixed": {"size": 10**20}}, "size: input should be less than or equal to 2147483647"),
        (":X", "cannot import ''"),
        (["fixed"], "expected a name or {name: {setting: value}}"),
        ("nowhere.py:X", "nowhere.py does not exist"),
        ("no_such_module:X", "cannot import 'no_such_module'"),
    ],
)
def test_invalid_specs(spec: Any, message: str) -> None:
    """One line with the location, the fault, and what is possible instead."""
    with pytest.raises(ConfigError) as caught:
        made(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(GOOD)
    return tmp_path


def test_a_custom_component(own: Path) -> None:
    """It is named by reference, its identity includes its source, and any process can load it by its spec."""
    part = made({"mine.py:Halves": {"parts": 3}}, base_dir=own)
    assert part.parts == 3
    assert part.name() == "halves"
    assert len(identity(part)["source"]) == 64
    assert made(to_spec(part), base_dir=Path("/")) == part


def test_an_edited_custom_component_has_another_identity(own: Path) -> None:
    """The hash of the source file is part of the identity."""
    before = identity(made("mine.py:Halves", base_dir=own))
    (own / "mine.py").write_text(GOOD.replace("parts: int = 2", "parts: int = 2  # thought over"))
    after = identity(made("mine.py:Halves", base_dir=own))
    assert before["source"] != after["source"]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine.py:Half", "mine.py has no class Half. Did you mean 'Halves'?"),
        ("mine.py:Soft", "put @dataclass(frozen=True) above class Soft in mine.py"),
        ("mine.py:Undone", "class Undone in mine.py does not define split"),
        ("mine.py:NoChunker", "mine.py:NoChunker is not a chunker; derive it from harness.Chunker"),
        ("broken.py:X", "broken.py:2: "),
    ],
)
def test_invalid_custom_components(own: Path, reference: str, message: str) -> None:
    """The message says what is missing and where to put it."""
    (own / "broken.py").write_text("x = 1\ny = = 2\n")
    with pytest.raises(ConfigError) as caught:
        made(reference, base_dir=own)
    assert message in str(caught.value)


def test_an_error_in_a_custom_file_shows_its_traceback(own: Path) -> None:
    """One line that names the file, and the traceback of its own code."""
    (own / "raises.py").write_text("1 / 0\n")
    with pytest.raises(
        ComponentError, match=r"raises\.py cannot be imported: ZeroDivisionError.*\(raises\.py:1\)"
    ) as caught:
        made("raises.py:X", base_dir=own)
    assert "catalog.py" not in caught.value.details
    assert caught.value.details.endswith("ZeroDivisionError: division by zero\n")


def test_a_moved_import_in_a_custom_file_names_its_new_place(own: Path) -> None:
    """Files written for version 0.1 imported the built-in components from other packages."""
    (own / "old.py").write_text("from harness.chunkers import Fixed\n")
    with pytest.raises(ConfigError, match=r"No module named 'harness\.chunkers'; write harness\.components\.chunkers$"):
        made("old.py:Fixed", base_dir=own)


def test_a_subclass_is_not_its_parent(own: Path) -> None:
    """Each class has its own reference and identity, even if both are in one file."""
    (own / "child.py").write_text(
        "from dataclasses import dataclass\nfrom harness import Chunker, Document, Spans\n\n"
        "@dataclass(frozen=True)\nclass Parent(Chunker):\n    def split(self, doc: Document) -> Spans:\n"
        "        return []\n\n"
        "@dataclass(frozen=True)\nclass Child(Parent):\n    pass\n"
    )
    parent, child = made("child.py:Parent", base_dir=own), type(made("child.py:Child", base_dir=own))()
    assert next(iter(to_spec(parent))).endswith(":Parent")
    assert next(iter(to_spec(child))).endswith(":Child")


def test_a_model_folder_is_identified_by_its_content(tmp_path: Path) -> None:
    """A model that was trained further in place is another model."""
    (tmp_path / "weights").write_text("one")
    before = identity(Local(str(tmp_path)))
    assert before == identity(Local(str(tmp_path)))
    (tmp_path / "weights").write_text("three")
    assert identity(Local(str(tmp_path))) != before


def test_the_server_is_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is named in the settings or in the environment."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://one/v1")
    one = identity(Api())
    monkeypatch.setenv("OPENAI_BASE_URL", "http://two/v1")
    assert identity(Api()) != one
    assert identity(Api(base_url="http://x/v1")) == identity(Api(base_url="http://x/v1"))


USED = """
from dataclasses import dataclass
from harness import Augmenter, Chunker, Retriever, Selector
from harness.components import Reranker
from harness.components.roles import BaseChunker

@dataclass(frozen=True)
class Cutting(Chunker):
    def split(self, doc): return [self.cut(doc.text)]
    def cut(self, text): return (0, len(text))

@dataclass(frozen=True)
class Setting(Selector):
    reranker: str = "none"
    def select(self, query, hits): ...

@dataclass(frozen=True)
class Inherited(Cutting):
    pass

@dataclass(frozen=True)
class Rescoring(Reranker):
    def score(self, query, texts): ...
    def rescore(self, n): return n

@dataclass(frozen=True)
class OfTheRole(BaseChunker):
    def cut(self, doc, given): return [[(0, len(doc.text))]]
"""


@pytest.mark.parametrize(
    ("role", "name", "used"),
    [
        ("chunker", "Cutting", "cut"),
        ("chunker", "Inherited", "cut"),
        ("selector", "Setting", "reranker"),
        ("selector", "Rescoring", "rescore"),
    ],
)
def test_names_by_which_the_harness_calls_a_role(tmp_path: Path, role: str, name: str, used: str) -> None:
    """A custom class that gives them another meaning is refused; one that implements the role itself may have them."""
    (tmp_path / "used.py").write_text(USED)
    with pytest.raises(ConfigError) as caught:
        component(role, f"used.py:{name}", where="x.yaml: grid", base_dir=tmp_path)
    message = f"x.yaml: grid: class {name} in used.py defines `{used}`, a name that the harness uses itself; rename it"
    assert str(caught.value) == message
    assert component("chunker", "used.py:OfTheRole", where="x", base_dir=tmp_path).name() == "of_the_role"
