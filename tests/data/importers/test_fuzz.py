"""Mutated real files end in a finding, a one-line error, or a correct import: no traceback, no silently wrong span.

A few hundred mutations by default; `pytest -m long` makes 12,000 (FUZZ overrides the number per case).
"""

import csv
import gzip
import io
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of

from harness.core.errors import HarnessError
from harness.data.checks import check_dataset, fix_dataset
from harness.data.dataset import load_dataset
from harness.data.importers import Options, import_dataset
from harness.data.manifest import read_manifest, write_manifest

FEW, MANY = 25, 1000
Needs = Counter[tuple[str, tuple[str, ...]]]
"""The number of occurrences of each question with each list of quotes."""

# -- small parts of real files


def beir(source: Path, part: Path) -> None:
    judged = (source / "qrels/test.tsv").read_bytes().split(b"\r\n")[:12]
    names = {row.split(b"\t")[at].decode() for row in judged[1:] for at in (0, 1)}
    for name in ("corpus", "queries"):
        lines = (source / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        (part / f"{name}.jsonl").write_text("".join(line for line in lines if json.loads(line)["_id"] in names))
    (part / "qrels").mkdir()
    (part / "qrels/test.tsv").write_bytes(b"\r\n".join(judged))


def trec(source: Path, part: Path) -> None:
    documents = (source / "corpus/doc-text.trec").read_text().split("</DOC>\n")
    judged = (source / "qrels").read_text().splitlines(keepends=True)[:12]
    wanted = {line.split()[2] for line in judged[:10]}
    kept = [one for one in documents if one.split("<DOCNO>")[-1].split("<")[0] in wanted]
    (part / "docs.trec").write_text("".join(f"{one}</DOC>\n" for one in kept))
    topics = (source / "query-text.trec").read_text().partition("<num>4<")[0].rpartition("<top>")[0]
    (part / "topics").write_text(topics)
    (part / "qrels").write_text("".join(judged))


def runs(source: Path, part: Path) -> None:
    for name in ("qrels.test", "results.test"):
        (part / name).write_text("".join((source / name).read_text().splitlines(keepends=True)[:30]))


def chroma(source: Path, part: Path) -> None:
    (part / "corpora").mkdir()
    text = (source / "corpora/chatlogs.md").read_text(encoding="utf-8")[:6000]
    (part / "corpora/chatlogs.md").write_text(text, encoding="utf-8")
    with (source / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus_id"] == "chatlogs"]
    kept = [row for row in rows if all(one["end_index"] < 6000 for one in json.loads(row["references"]))]
    with (part / "questions_df.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(kept[:8])


def squad(source: Path, part: Path) -> None:
    article = json.loads((source / "xquad.en.json").read_text(encoding="utf-8"))["data"][0]
    content = {"version": "1.1", "data": [{**article, "paragraphs": article["paragraphs"][:2]}]}
    (part / "x.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def hotpotqa(source: Path, part: Path) -> None:
    content = json.loads((source / "hotpotqa_train.json").read_text(encoding="utf-8"))[:2]
    (part / "x.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def contract_nli(source: Path, part: Path) -> None:
    content = json.loads((source / "dev.json").read_text(encoding="utf-8"))
    shortest = sorted(content["documents"], key=lambda one: len(one["text"]))[:1]
    (part / "x.json").write_text(json.dumps({**content, "documents": shortest}, ensure_ascii=False), encoding="utf-8")


def tables(source: Path, part: Path) -> None:
    """The questions of a SQuAD file as a table, one quote per row."""
    article = json.loads((source / "xquad.en.json").read_text(encoding="utf-8"))["data"][1]
    with (part / "documents.csv").open("w", encoding="utf-8", newline="") as file:
        paragraphs = [one["context"] for one in article["paragraphs"][:3]]
        csv.writer(file).writerows([("id", "text"), *((f"p{at}", text) for at, text in enumerate(paragraphs))])
    with (part / "queries.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [
            (qa["question"], f"p{at}", answer["text"])
            for at, paragraph in enumerate(article["paragraphs"][:3])
            for qa in paragraph["qas"][:4]
            for answer in qa["answers"]
        ]
        csv.writer(file).writerows([("question", "doc", "quote"), *rows])


def documents(source: Path, part: Path) -> None:
    sections = json.loads((source / "anthropic_docs.json").read_text(encoding="utf-8"))[:8]
    asked = json.loads((source / "docs_evaluation_dataset.json").read_text(encoding="utf-8"))[:8]
    for name, rows in (("docs", sections), ("asked", asked)):
        lines = (json.dumps({**row, "text": row.get("text", "")[:400]}) for row in rows)
        (part / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def wice(source: Path, part: Path) -> None:
    with gzip.open(source / "claim_dev.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = sorted((line for line in file), key=len)[:5]
    (part / "claim_dev.jsonl").write_text("".join(lines), encoding="utf-8")


OURS = {"doc.id": "chunk_link", "query.text": "question", "evidence.doc": "correct_chunks"}
CASES: dict[str, tuple[str, str, Callable[[Path, Path], None], Options]] = {
    "beir": ("beir", "beir-scifact", beir, Options()),
    "trec": ("trec", "vaswani", trec, Options()),
    "runs": ("trec", "trec-eval", runs, Options(qrels={"": "qrels.test"}, runs={"r": "results.test"})),
    "chroma": ("chroma", "chroma-chunking", chroma, Options()),
    "squad": ("squad", "xquad-en", squad, Options()),
    "hotpotqa": ("hotpotqa", "hotpotqa-100", hotpotqa, Options()),
    "contract-nli": ("contract-nli", "contract-nli", contract_nli, Options()),
    "csv": ("csv", "xquad-en", tables, Options()),
    "jsonl": (
        "jsonl",
        "anthropic-docs",
        documents,
        Options("docs.jsonl", {"": "asked.jsonl"}, columns=OURS, absent=True),
    ),
    "wice": ("wice", "wice", wice, Options()),
}


# -- the same sources read by independent code: the expected result


def needs_of_chroma(part: Path) -> Needs:
    content = (part / "questions_df.csv").read_text(encoding="utf-8-sig")
    rows = csv.DictReader(io.StringIO(content, newline=""))
    return Counter(
        (row["question"], _distinct(one["content"] for one in json.loads(row["references"]))) for row in rows
    )


def needs_of_squad(part: Path) -> Needs:
    data = json.loads((part / "x.json").read_text(encoding="utf-8-sig"))["data"]
    asked = [qa for article in data for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    return Counter(
        (qa["question"], _distinct(one["text"] for one in qa["answers"] if not qa.get("is_impossible"))) for qa in asked
    )


def needs_of_hotpotqa(part: Path) -> Needs:
    found: Needs = Counter()
    for one in json.loads((part / "x.json").read_text(encoding="utf-8-sig")):
        passages = dict(reversed([(title, sentences) for title, sentences in one["context"]]))
        quotes = [
            passages[title][at].strip()
            for title, at in dict.fromkeys(map(tuple, one["supporting_facts"]))
            if title in passages and 0 <= at < len(passages[title]) and passages[title][at].strip()
        ]
        if quotes:
            found[one["question"], tuple(sorted(quotes))] += 1
    return found


REREAD: dict[str, Callable[[Path], Needs]] = {
    "chroma": needs_of_chroma,
    "squad": needs_of_squad,
    "hotpotqa": needs_of_hotpotqa,
}


def _distinct(quotes: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(set(quotes)))


# -- mutations

STRANGE = [
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\t", b'"', b"'", b",", b"{", b"}", b"[", b"]", b"<"),
    *(b"null", b"NaN", b"-1", b"1e999", b"99999999999999999999", b"0", b"true", b"{}", b"[]", b'""', b"\\ud800"),
    *("\u2028".encode(), "é".encode(), "🧂".encode(), b"</DOC>", b"<DOC>", b"<top>", b"#", b" ", b"\\n"),
]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """One to five changes, from a single byte to a repeated block or swapped lines."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(content) + 1)
        end = min(len(content), at + chance.choice((1, 1, 2, 8, 40, 400)))
        change = chance.randrange(7)
        if change == 0:
            content = content[:at] + content[end:]
        elif change == 1:
            content = content[:at] + chance.choice(STRANGE) + content[at:]
        elif change == 2:
            content = content[:at] + chance.choice(STRANGE) + content[end:]
        elif change == 3:
            content = content[:end] + content[at:end] + content[end:]
        elif change == 4:
            content = content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        elif change == 5:
            digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                place = chance.choice(digits)
                content = content[:place] + str(chance.randrange(10)).encode() + content[place + 1 :]
        else:
            lines = content.splitlines(keepends=True)
            if len(lines) > 1:
                one, other = (chance.randrange(len(lines)) for _ in range(2))
                lines[one], lines[other] = lines[other], lines[one]
                content = b"".join(lines)
    return content if chance.random() > 0.03 else content[: chance.randrange(len(content) + 1)]


def mutate_values(content: bytes, chance: random.Random) -> bytes:
    """A JSON file, or a line of JSONL, with one value replaced or removed; it stays valid JSON."""
    lines = content.splitlines(keepends=True)
    at = chance.randrange(len(lines)) if lines else 0
    try:
        value = json.loads(lines[at])
    except (ValueError, IndexError):
        return content
    places = list(_places(value))
    if places:
        holder, key = chance.choice(places)
        old = holder[key]
        if chance.random() < 0.15 and isinstance(holder, dict):
            del holder[key]
        elif isinstance(old, int) and not isinstance(old, bool) and chance.random() < 0.6:
            holder[key] = old + chance.choice((-7, -1, 1, 2, 100, -(10**6), 10**12))
        else:
            holder[key] = chance.choice([None, True, 0, -1, 1.5, "", " ", "x", "\ud800", [], {}, [1], {"a": 1}, 10**30])
    lines[at] = json.dumps(value).encode() + b"\n"
    return b"".join(lines)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


# -- what must hold


def one_line(error: HarnessError) -> None:
    assert str(error)
    assert "\n" not in str(error)


def outcome(kind: str, case: str, part: Path, target: Path, options: Options) -> str:
    """The outcome of an import, asserted to be one of the permitted ones."""
    try:
        import_dataset(kind, part, target, options=options)
    except HarnessError as error:
        one_line(error)
        assert not target.exists()
        assert not list(target.parent.glob(f".{target.name}-*"))
        return "refused"
    found = sound(target)
    if found == "correct" and case in REREAD:
        try:
            expected = REREAD[case](part)
        except (ValueError, KeyError, TypeError, AttributeError, csv.Error, RecursionError):
            return "correct"
        assert needs(target) == expected
    return found


def needs(root: Path) -> Needs:
    data = load_dataset(root, "validation", copies="ignore")
    return Counter(
        (query.text, tuple(sorted({text_of(data, place) for item in query.evidence for place in item.places})))
        for query in data.query_set.queries
    )


def sound(root: Path) -> str:
    """Asserts that the checker, the loader and the repair agree."""
    try:
        errors = [finding for finding in check_dataset(root) if finding.level == "error"]
    except HarnessError as error:
        one_line(error)
        return "refused"
    assert all("\n" not in finding.where for finding in errors)
    refused = []
    for name, pinned in read_manifest(root).queries.items():
        try:
            data = load_dataset(root, name, copies="ignore", final=True)
        except HarnessError as error:
            refused.append(str(error))
            continue
        raw = [json.loads(line) for line in pinned.path.read_bytes().splitlines() if line.strip()]
        for record, query in zip(raw, data.query_set.queries, strict=True):
            for written, item in zip(record.get("evidence", []), query.evidence, strict=True):
                for message, place in zip([written, *written.get("also", [])], item.places, strict=False):
                    if message.get("quote") is not None:
                        assert text_of(data, place) == message["quote"]
    # The check reports an error if and only if loading fails.
    assert bool(errors) == bool(refused), (errors, refused)
    target = root.parent / "fixed"
    try:
        fix_dataset(root, target)
        left = [finding for finding in check_dataset(target) if finding.level == "error"]
        assert len(left) <= len(errors)
    except HarnessError as error:
        one_line(error)
    shutil.rmtree(target, ignore_errors=True)
    return "finding" if errors else "correct"


@pytest.fixture(params=[pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.long)])
def count(request: pytest.FixtureRequest) -> int:
    return int(os.environ.get("FUZZ", request.param))


@pytest.mark.parametrize("case", CASES)
def test_mutated_sources(case: str, count: int, shared: Callable[[str], Path], tmp_path: Path) -> None:
    """A file of the source, mutated as bytes or as JSON values."""
    kind, name, write, options = CASES[case]
    part = tmp_path / "part"
    part.mkdir()
    write(shared(name), part)
    assert outcome(kind, case, part, tmp_path / "data", options) == "correct"
    shutil.rmtree(tmp_path / "data")
    files = {path: path.read_bytes() for path in sorted(part.rglob("*")) if path.is_file()}
    found: Counter[str] = Counter()
    for number in range(count):
        chance = random.Random(f"{case} {number}")
        path = chance.choice(list(files))
        structured = path.suffix in (".json", ".jsonl") and chance.random() < 0.5
        path.write_bytes((mutate_values if structured else mutated)(files[path], chance))
        try:
            found[outcome(kind, case, part, tmp_path / "data", options)] += 1
        except Exception as error:
            error.add_note(f"mutation {number} of {path.name}")
            raise
        path.write_bytes(files[path])
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
    print(case, dict(found))
    assert found["refused"] + found["finding"] > 0
    assert found["correct"] > 0


def test_mutated_data_sets(count: int, shared: Callable[[str], Path], tmp_path: Path) -> None:
    """Manifest, corpus and queries of an imported set, mutated and then pinned again or not."""
    part, clean = tmp_path / "part", tmp_path / "clean"
    part.mkdir()
    chroma(shared("chroma-chunking"), part)
    import_dataset("chroma", part, clean)
    names = ["manifest.yaml", "corpus.jsonl", "queries/validation.jsonl"]
    found: Counter[str] = Counter()
    for number in range(2 * count):
        chance = random.Random(f"data set {number}")
        root = tmp_path / "data"
        shutil.copytree(clean, root)
        path = root / chance.choice(names)
        structured = path.suffix == ".jsonl" and chance.random() < 0.5
        path.write_bytes((mutate_values if structured else mutated)(path.read_bytes(), chance))
        try:
            if path.suffix == ".jsonl" and chance.random() < 0.9:
                write_manifest(read_manifest(root))
            found[sound(root)] += 1
        except HarnessError:
            found["refused"] += 1
        except Exception as error:
            error.add_note(f"mutation {number} of {path.name}")
            raise
        shutil.rmtree(root)
    print("data set", dict(found))
    assert min(found["refused"], found["finding"], found["correct"]) > 0
