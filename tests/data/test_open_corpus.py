"""Commands on a data set give the same output whether its documents are in memory or in a temporary folder."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from harness.data import open_corpus as module
from harness.data.corpus import HeldDocuments
from harness.data.manifest import read_manifest
from harness.data.open_corpus import open_corpus
from harness.data.passage_search import PassageSearch
from harness.data.stored_documents import StoredDocuments

Both = Callable[[Callable[[], object]], list[object]]


@pytest.fixture
def both(garden_data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Both:
    """Calls a function twice: with few documents in memory, and with a temporary folder, which is empty afterwards."""

    def called(work: Callable[[], object]) -> list[object]:
        temporary = tmp_path / "temporary"
        temporary.mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        found = [work()]
        monkeypatch.setattr(module, "HELD", 0)
        found.append(work())
        assert not list(temporary.iterdir())
        return found

    return called


def test_documents(garden_data: Path, both: Both) -> None:
    """The same documents, of different kinds."""
    kinds = []

    def read() -> object:
        with open_corpus(read_manifest(garden_data)) as documents:
            kinds.append(type(documents))
            return list(documents)

    held, stored = both(read)
    assert held == stored
    assert kinds == [HeldDocuments, StoredDocuments]


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("show", "--json"),
        ("check",),
        ("check", "--all", "--json"),
        ("evidence", "--search", "amber basil"),
        ("evidence", "--query", "What?", "--quote", "nothing like this"),
    ],
    ids=" ".join,
)
def test_commands(
    command: tuple[str, ...],
    garden_data: Path,
    both: Both,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same output and exit code."""

    def run() -> object:
        code = main(["data", command[0], str(garden_data), *command[1:]])
        return code, capsys.readouterr()

    held, stored = both(run)
    assert held == stored


def test_passages_are_searched_in_parts(garden_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many documents are indexed at once."""
    from harness.data import passage_search

    with open_corpus(read_manifest(garden_data)) as documents:
        expected = PassageSearch(documents).search("amber basil cedar", 20)
        monkeypatch.setattr(passage_search, "_PART", 2)
        assert PassageSearch(documents).search("amber basil cedar", 20) == expected
        assert len(expected) > 2
