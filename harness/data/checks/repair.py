"""A repaired copy of a data set: makes only unambiguous repairs, and writes a diff of them."""

import codecs
import copy
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import DataError
from harness.core.records import Document, Span
from harness.core.text_files import Line, byte_lines, decoded, json_object
from harness.data.dataset import read_corpus
from harness.data.evidence_faults import place_fault
from harness.data.manifest import Manifest, PinnedFile, read_manifest, require_plain, write_manifest
from harness.data.raw_records import Citation, query
from harness.data.record_files import verify
from harness.storage.files import appearing

DIFF = "fixes.diff"
"""The file in the copy that lists the changes: a unified diff of the query files."""


UNUSUAL = "lines left unchanged, because their JSON could not be rewritten byte for byte"
_BOM = codecs.BOM_UTF8


class Fixed(NamedTuple):
    """The number of repairs by kind, and the diff of the query files."""

    counts: Mapping[str, int]
    diff: str


def fix_dataset(root: Path, target: Path) -> Fixed:
    """Write a copy of a data set to the folder `target`, with all evidence repaired that has only one possible repair.

    Moves spans whose quote occurs exactly once elsewhere, gives quotes the white space of the text if they differ in
    nothing else, trims white space at the ends of spans, and drops repeated records. Other lines stay the same, byte
    for byte. Raises DataError if `target` contains files or is inside the data set, or if a file is not the pinned one,
    is not plain, or cannot be read.
    """
    manifest = read_manifest(root)
    documents = {doc.id: doc for doc in read_corpus(manifest)}
    counts: Counter[str] = Counter()
    written: dict[str, bytes] = {}
    diff = ""
    if target.resolve().is_relative_to(root.resolve()):
        raise DataError(f"{target}: is inside the data set; name a folder outside it")
    for pinned in {pinned.path: pinned for pinned in manifest.queries.values()}.values():
        verify(pinned)
        require_plain(pinned)
        lines = list(_repaired_lines(pinned.path, documents, counts))
        inside = pinned.path.relative_to(root).as_posix()
        written[inside] = b"".join(after for _, after in lines)
        diff += _diff(inside, lines)
    with appearing(target) as folder:
        _write_copy(root, folder, target.resolve().name, manifest, written, diff)
    return Fixed(counts, diff)


def _diff(file: str, lines: Sequence[tuple[bytes, bytes]]) -> str:
    """A unified diff without context: each changed line, before and after."""
    hunks, at = "", 0
    for number, (before, after) in enumerate(lines, 1):
        at += bool(after)
        if before != after:
            hunks += f"@@ -{number} +{at}{'' if after else ',0'} @@\n{_side('-', before)}{_side('+', after)}"
    # With a tab after it, a file name may contain spaces.
    return f"--- a/{file}\t\n+++ b/{file}\t\n{hunks}" if hunks else ""


def _side(sign: str, line: bytes) -> str:
    if not line:
        return ""
    text = f"{sign}{line.decode('utf-8', 'replace')}"
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _write_copy(
    root: Path, folder: Path, name: str, manifest: Manifest, written: Mapping[str, bytes], diff: str
) -> None:
    """Copy the data set to `folder`, with the repaired query files, their diff, and an updated manifest."""
    shutil.copytree(root, folder, dirs_exist_ok=True, ignore_dangling_symlinks=True)
    for inside, content in written.items():
        (folder / inside).write_bytes(content)
    (folder / DIFF).write_bytes(diff.encode())

    def moved(pinned: PinnedFile) -> PinnedFile:
        return replace(pinned, path=folder / pinned.path.relative_to(root), sha256="")

    made = replace(
        manifest,
        root=folder,
        name=name,
        corpus=moved(manifest.corpus),
        queries={name: moved(pinned) for name, pinned in manifest.queries.items()},
        runs={name: moved(pinned) for name, pinned in manifest.runs.items()},
        description=f"{manifest.description}; repaired copy, see {DIFF}".removeprefix("; "),
    )
    write_manifest(made)


def _repaired_lines(
    path: Path, documents: Mapping[str, Document], counts: Counter[str]
) -> Iterator[tuple[bytes, bytes]]:
    """Each line of a query file before and after the repair; empty if it is dropped."""
    seen: dict[str, Any] = {}
    for line, content in byte_lines(path):
        text = decoded(line, content)
        if not text.strip():
            yield content, content
            continue
        record = json_object(line, text)
        name = query(line, record).id
        if name in seen and seen[name] == record:
            counts["repeated records dropped"] += 1
            yield content, b""
        elif name in seen:
            # Only a person can say which of the two is right; the check reports them.
            yield content, content
        else:
            seen[name] = record
            yield content, _repaired(line, content, record, documents, counts)


def _repaired(
    line: Line, content: bytes, record: dict[str, Any], documents: Mapping[str, Document], counts: Counter[str]
) -> bytes:
    """The line with the evidence of its record repaired; unchanged if no valid repair is possible."""
    made, done = copy.deepcopy(record), Counter[str]()
    for evidence in made.get("evidence", []):
        for place in (evidence, *evidence.get("also", [])):
            _repair(place, documents, done)
    if made == record:
        return content
    try:
        query(line, made)
    except DataError:
        # Two items became the same one; which one to drop is for a person to decide.
        return content
    line_made = _written(content.removeprefix(_BOM).decode(), record, made)
    if line_made is None:
        counts[UNUSUAL] += 1
        return content
    counts.update(done)
    mark = _BOM if content.startswith(_BOM) else b""
    end = content[len(content.rstrip(b"\r\n")) :]
    return mark + line_made + end


def _written(before: str, record: dict[str, Any], after: dict[str, Any]) -> bytes | None:
    """The changed record, formatted as the line was; None if that format cannot be reproduced."""
    for spaces in (None, (",", ":")):
        for plain in (False, True):

            def dumped(value: dict[str, Any], spaces: Any = spaces, plain: bool = plain) -> str:
                return json.dumps(value, ensure_ascii=plain, separators=spaces)

            if dumped(record) == before.strip():
                try:
                    return dumped(after).encode()
                except UnicodeEncodeError:
                    return None
    return None


def _repair(written: dict[str, Any], documents: Mapping[str, Document], counts: Counter[str]) -> None:
    """Repair one place of evidence in its record."""
    start, end, quote = written.get("start"), written.get("end"), written.get("quote")
    if start is None or end is None:
        return
    fault = place_fault(Citation(written["doc"], Span(written["doc"], start, end), quote), documents)
    if fault and not fault.right:
        return
    if fault and fault.right:
        start, end, quote = fault.right
        counts[_DONE[fault.code]] += 1
    text = documents[written["doc"]].text[start:end]
    bare = text.strip()
    if bare and bare != text:
        start += len(text) - len(text.lstrip())
        end = start + len(bare)
        quote = bare if quote is not None else None
        counts["spans trimmed of white space at their ends"] += 1
    written |= {"start": start, "end": end} | ({"quote": quote} if quote is not None else {})


_DONE = {
    "shifted": "spans moved to where their quote occurs",
    "out-of-range": "spans moved to where their quote occurs",
    "quote-differs": "quotes given the white space of the document",
}
