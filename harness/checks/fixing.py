"""A repaired copy of a data set: only what can be mended in one way, and a diff of what was done."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.lines import byte_lines, json_object
from harness.dataset.load import read_corpus
from harness.dataset.manifest import MANIFEST, Manifest, PinnedFile, read_manifest, write_manifest
from harness.dataset.places import place_fault
from harness.dataset.records import RawPlace, query
from harness.errors import DataError
from harness.model import Document

DIFF = "fixes.diff"
"""The file in the copy that tells what was changed: a unified diff of the query files."""


class Fixed(NamedTuple):
    """What was mended, and how often, by kind."""

    counts: Mapping[str, int]
    diff: str


def fix_dataset(root: Path, target: Path) -> Fixed:
    """Write a copy of a data set into the folder `target`, with the evidence mended that can be mended in one way only.

    Spans whose quote stands elsewhere once are moved there, quotes that differ in white space alone are made those of
    the text, white space at the edges of spans is left out, records that stand twice are left out once. Lines that
    need none of it stay as they are, to the byte. Raises DataError where the folder holds files, or where documents or
    queries cannot be read at all.
    """
    if target.exists() and (target.is_file() or any(target.iterdir())):
        raise DataError(f"{target}: already there; name a new folder for the repaired copy")
    manifest = read_manifest(root)
    documents = {doc.id: doc for doc in read_corpus(manifest)}
    counts: dict[str, int] = {}
    written: dict[Path, bytes] = {}
    diff = ""
    for pinned in manifest.queries.values():
        lines = list(_mended_lines(pinned.path, documents, counts))
        inside = pinned.path.relative_to(root).as_posix()
        written[target / inside] = b"".join(after for _, after in lines)
        diff += _diff(inside, lines)
    _publish(root, target, manifest, written, diff)
    return Fixed(counts, diff)


def _diff(file: str, lines: Sequence[tuple[bytes, bytes]]) -> str:
    """A unified diff without context, each changed line beside what became of it."""
    told, at = "", 0
    for number, (before, after) in enumerate(lines, 1):
        at += bool(after)
        if before != after:
            told += f"@@ -{number} +{at}{'' if after else ',0'} @@\n{_side('-', before)}{_side('+', after)}"
    return f"--- a/{file}\n+++ b/{file}\n{told}" if told else ""


def _side(sign: str, line: bytes) -> str:
    if not line:
        return ""
    text = f"{sign}{line.decode('utf-8', 'replace')}"
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _publish(root: Path, target: Path, manifest: Manifest, written: Mapping[Path, bytes], diff: str) -> None:
    try:
        shutil.copytree(root, target, dirs_exist_ok=True)
        for path, content in written.items():
            path.write_bytes(content)
        (target / DIFF).write_bytes(diff.encode())

        def moved(pinned: PinnedFile) -> PinnedFile:
            return PinnedFile(target / pinned.path.relative_to(root), "", pinned.locked, pinned.synthetic)

        described = f"{manifest.description}; repaired copy, see {DIFF}".removeprefix("; ")
        write_manifest(
            Manifest(
                target,
                target.resolve().name,
                moved(manifest.corpus),
                {name: moved(pinned) for name, pinned in manifest.queries.items()},
                described,
                manifest.licence,
                manifest.source,
                {name: moved(pinned) for name, pinned in manifest.runs.items()},
                manifest.imported,
            )
        )
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise DataError(f"{target}: cannot be written: {error.strerror}") from None
    assert (target / MANIFEST).is_file()


def _mended_lines(
    path: Path, documents: Mapping[str, Document], counts: dict[str, int]
) -> Iterator[tuple[bytes, bytes]]:
    """Each line of a query file and what becomes of it: empty where it is left out."""
    seen: dict[str, Any] = {}
    for line, content in byte_lines(path):
        try:
            text = content.decode("utf-8-sig" if line.number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise line.fault("not UTF-8; save the file as UTF-8") from None
        if not text.strip():
            yield content, content
            continue
        record = json_object(line, text)
        name = query(line, record).id
        if seen.get(name) == record:
            _count(counts, "records that stood twice left out once")
            yield content, b""
            continue
        if name in seen:
            raise line.fault(f"query '{name}' stands twice with other content; which is right only a person can say")
        seen[name] = record
        before = json.dumps(record)
        for evidence in record.get("evidence", []):
            for place in (evidence, *evidence.get("also", [])):
                _mend(place, documents, counts)
        changed = json.dumps(record) != before
        yield content, (json.dumps(record, ensure_ascii=False) + "\n").encode() if changed else content


def _mend(written: dict[str, Any], documents: Mapping[str, Document], counts: dict[str, int]) -> None:
    """Mend one place in its record."""
    start, end, quote = written.get("start"), written.get("end"), written.get("quote")
    if start is None or end is None:
        return
    fault = place_fault(RawPlace(written["doc"], start, end, quote), documents)
    if fault and not fault.right:
        return
    if fault and fault.right:
        start, end, quote = fault.right
        _count(counts, _DONE[fault.code])
    text = documents[written["doc"]].text[start:end]
    bare = text.strip()
    if bare and bare != text:
        start += len(text) - len(text.lstrip())
        end = start + len(bare)
        quote = bare if quote is not None else None
        _count(counts, "spans without the white space at their edges")
    written |= {"start": start, "end": end} | ({"quote": quote} if quote is not None else {})


_DONE = {
    "shifted": "spans moved to where their quote stands",
    "out-of-range": "spans moved to where their quote stands",
    "quote-differs": "quotes made those of the text, which differ in white space",
}


def _count(counts: dict[str, int], what: str) -> None:
    counts[what] = counts.get(what, 0) + 1
