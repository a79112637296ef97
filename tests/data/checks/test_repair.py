"""The repaired copy: unambiguous repairs are made and listed in the diff; everything else stays byte for byte."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of

from harness.core.errors import DataError
from harness.data.checks import check_dataset, fix_dataset
from harness.data.checks.repair import DIFF, UNUSUAL
from harness.data.dataset import load_dataset
from harness.data.importers import import_dataset
from harness.data.manifest import read_manifest, write_manifest

TEXT = "Stir twice. Rest ten  minutes. Stir twice."


def query(name: str, start: int, end: int, quote: str | None = None, **more: Any) -> dict[str, Any]:
    place = {"doc": "a", "start": start, "end": end} | ({} if quote is None else {"quote": quote})
    return {"id": name, "text": f"{name}?", "evidence": [{**place, **more}]}


def fixed(make_data: Callable[..., Path], tmp_path: Path, *queries: dict[str, Any]) -> tuple[Path, dict[str, int]]:
    root = make_data([{"id": "a", "text": TEXT}], queries)
    done = fix_dataset(root, tmp_path / "fixed")
    return tmp_path / "fixed", dict(done.counts)


def first_place(root: Path, at: int) -> dict[str, Any]:
    line = (root / "queries/validation.jsonl").read_text().splitlines()[at]
    place: dict[str, Any] = json.loads(line)["evidence"][0]
    return place


def test_unambiguous_repairs(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Spans are moved and trimmed, quotes corrected, also at equivalent places; ambiguous cases stay."""
    root, counts = fixed(
        make_data,
        tmp_path,
        query("moved", 13, 31, "Rest ten  minutes."),
        query("trimmed", 11, 30),
        query("trimmed with quote", 11, 31, " Rest ten  minutes. "),
        query("spaces", 12, 29, "Rest ten minutes."),
        query("beyond", 90, 99, "Rest"),
        query("two places", 20, 31, "Stir twice."),
        query("also", 0, 4, "Stir", also=[{"doc": "a", "start": 13, "end": 17, "quote": "Rest"}]),
        query("blank", 11, 12),
    )
    whole = {"doc": "a", "start": 12, "end": 30, "quote": "Rest ten  minutes."}
    assert [first_place(root, at) for at in (0, 2, 3)] == [whole] * 3
    assert first_place(root, 1) == {"doc": "a", "start": 12, "end": 30}
    assert first_place(root, 4) == {"doc": "a", "start": 12, "end": 16, "quote": "Rest"}
    assert first_place(root, 5) == {"doc": "a", "start": 20, "end": 31, "quote": "Stir twice."}
    assert first_place(root, 6)["also"] == [{"doc": "a", "start": 12, "end": 16, "quote": "Rest"}]
    assert first_place(root, 7) == {"doc": "a", "start": 11, "end": 12}
    assert counts == {
        "spans moved to where their quote occurs": 3,
        "spans trimmed of white space at their ends": 2,
        "quotes given the white space of the document": 1,
    }
    left = [finding.code for finding in check_dataset(root) if finding.level == "error"]
    assert left == ["shifted"]


def test_other_lines_stay_the_same_and_the_diff_applies(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """`patch` turns the old query file into that of the copy; unchanged lines are the same bytes."""
    odd = '{"text":"odd?",  "id":"o", "evidence":[]}\r\n\n'
    root = make_data([{"id": "a", "text": TEXT}], [query("moved", 13, 31, "Rest ten  minutes."), query("fine", 0, 4)])
    file = root / "queries/validation.jsonl"
    file.write_bytes(odd.encode() + file.read_bytes() + odd.encode().replace(b'"o"', b'"p"'))
    write_manifest(read_manifest(root))
    done = fix_dataset(root, tmp_path / "fixed")
    before, after = (folder / "queries/validation.jsonl" for folder in (root, tmp_path / "fixed"))
    changed = [a != b for a, b in zip(before.read_bytes().split(b"\n"), after.read_bytes().split(b"\n"), strict=True)]
    assert changed == [False, False, True, False, False, False, False]
    assert (tmp_path / "fixed" / DIFF).read_text() == done.diff
    assert (tmp_path / "fixed/corpus.jsonl").read_bytes() == (root / "corpus.jsonl").read_bytes()
    if shutil.which("patch"):
        shutil.copytree(root, tmp_path / "patched")
        subprocess.run(["patch", "-p1", "-i", str(tmp_path / "fixed" / DIFF)], cwd=tmp_path / "patched", check=True)
        assert (tmp_path / "patched/queries/validation.jsonl").read_bytes() == after.read_bytes()


def test_repeated_records(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """An equal record is dropped; with different content only a person can say which one is right."""
    root, counts = fixed(make_data, tmp_path, query("q", 0, 4), query("q", 0, 4), query("r", 0, 4))
    assert counts == {"repeated records dropped": 1}
    assert len(load_dataset(root, "validation").query_set.queries) == 2
    shutil.rmtree(root)
    shutil.rmtree(tmp_path / "datasets")
    twice = (query("q", 11, 30), query("q", 11, 30), query("q", 0, 5), query("r", 13, 31, "Rest ten  minutes."))
    root, counts = fixed(make_data, tmp_path, *twice)
    assert counts == {
        "spans trimmed of white space at their ends": 1,
        "repeated records dropped": 1,
        "spans moved to where their quote occurs": 1,
    }
    assert [finding.code for finding in check_dataset(root) if finding.level == "error"] == ["duplicate-id"]


def test_repairs_that_would_be_invalid(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Not made: two items that would become the same one, and a quote that occurs inside another word."""
    two = {"doc": "a", "start": 11, "end": 30, "quote": " Rest ten  minutes."}
    both = query("two", 12, 30, "Rest ten  minutes.")
    both["evidence"].append(two)
    root, counts = fixed(make_data, tmp_path, both, query("inside", 30, 33, "tir"))
    assert counts == {}
    assert [finding.code for finding in check_dataset(root) if finding.level == "error"] == ["shifted"]


def test_an_interrupted_repair_leaves_nothing(
    make_data: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy that looks repaired."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    root = make_data([{"id": "a", "text": TEXT}], [query("trimmed", 11, 30)])
    monkeypatch.setattr("harness.data.checks.repair.write_manifest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fix_dataset(root, tmp_path / "fixed")
    assert [path.name for path in tmp_path.iterdir()] == ["datasets"]


def test_a_second_repair_changes_nothing(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Repairing is idempotent."""
    root, _ = fixed(make_data, tmp_path, query("moved", 13, 31, "Rest ten  minutes."), query("trimmed", 11, 30))
    again = fix_dataset(root, tmp_path / "again")
    assert (dict(again.counts), again.diff) == ({}, "")


def test_an_existing_folder_is_left_alone(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """The repair refuses to write into it."""
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed/mine").write_text("x")
    with pytest.raises(DataError, match="already contains files"):
        fixed(make_data, tmp_path, query("q", 0, 4))


def test_chroma(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """217 spans lose the white space at their ends; nothing else changes; the 49 cut words remain."""
    import_dataset("chroma", shared("chroma-chunking"), tmp_path / "chroma")
    done = fix_dataset(tmp_path / "chroma", tmp_path / "fixed")
    assert dict(done.counts) == {"spans trimmed of white space at their ends": 217}
    codes = [finding.code for finding in check_dataset(tmp_path / "fixed")]
    assert (codes.count("white-space-edge"), codes.count("inside-word")) == (0, 49)
    before, after = (load_dataset(tmp_path / name, "validation", copies="ignore") for name in ("chroma", "fixed"))
    for one, other in zip(before.query_set.queries, after.query_set.queries, strict=True):
        old, new = (
            [text_of(data, item.places[0]) for item in q.evidence] for data, q in ((before, one), (after, other))
        )
        assert [text.strip() for text in old] == new


def test_quotes_that_differ_in_white_space(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Are corrected at their own place; elsewhere only if they occur once, as whole words."""
    text = "ha ha ha and We breathe\ncategories of air."
    asked = [
        {"id": name, "text": "?", "evidence": [{"doc": "a", "start": start, "end": end, "quote": quote}]}
        for name, start, end, quote in (("here", 3, 8, "ha\nha"), ("inside", 0, 7, "the cat"))
    ]
    root = make_data([{"id": "a", "text": text}], asked)
    fix_dataset(root, tmp_path / "fixed")
    assert first_place(tmp_path / "fixed", 0) == {"doc": "a", "start": 3, "end": 8, "quote": "ha ha"}
    assert first_place(tmp_path / "fixed", 1) == {"doc": "a", "start": 0, "end": 7, "quote": "the cat"}


@pytest.mark.parametrize("form", ["compact", "escaped", "odd spacing", "1.10", "1e400"])
def test_nothing_else_of_a_line_changes(make_data: Callable[..., Path], tmp_path: Path, form: str) -> None:
    """Compact and escaped lines keep their form; a line that cannot be reproduced exactly stays, and is counted."""
    record = query("é", 11, 30)
    line = json.dumps(record, ensure_ascii=False)
    written = {
        "compact": json.dumps(record, separators=(",", ":"), ensure_ascii=False),
        "escaped": json.dumps(record),
        "odd spacing": line.replace('"id": ', '"id" :  '),
        "1.10": line[:-1] + ', "metadata": {"n": 1.10}}',
        "1e400": line[:-1] + ', "metadata": {"n": 1e400}}',
    }[form]
    root = make_data([{"id": "a", "text": TEXT}], [record])
    (root / "queries/validation.jsonl").write_text(written + "\n", encoding="utf-8")
    write_manifest(read_manifest(root))
    done = fix_dataset(root, tmp_path / "fixed")
    after = (tmp_path / "fixed/queries/validation.jsonl").read_text(encoding="utf-8")
    kept = form in ("compact", "escaped")
    assert dict(done.counts) == {"spans trimmed of white space at their ends" if kept else UNUSUAL: 1}
    assert after.count(",") == written.count(",")
    assert (after == written + "\n") is not kept
    assert after.rstrip("\n").replace("12", "11") == written if kept else True


def test_a_folder_inside_the_data_set(make_data: Callable[..., Path]) -> None:
    """Is refused, as the copy would become part of the data set."""
    root = make_data([{"id": "a", "text": TEXT}], [query("q", 0, 4)])
    with pytest.raises(DataError, match="is inside the data set"):
        fix_dataset(root, root / "fixed")
