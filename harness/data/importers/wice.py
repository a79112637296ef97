"""WiCE files: claims with the supporting sentences of a web page."""

from harness.core.plurals import plural
from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, span
from harness.data.importers.fields import list_of, object_of, text_of, whole_number
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source


def import_wice(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import WiCE files: each page is a document with one sentence per line; each file of claims is a query set.

    Several sets of sentences may each support a claim. The first set becomes the evidence, as evidence items are all
    needed and cannot express alternatives; the other sets are kept in `metadata.alternatives`.
    """
    paths = source.all("claim_*.jsonl") if source.path.is_dir() else [source.path]
    pages: dict[str, str] = {}
    claims = [(path, line, record) for path in paths for line, record in source.json_lines(path)]
    for _, line, record in claims:
        text = "\n".join(_sentences(line, record))
        if text not in pages:
            pages[text] = f"page of {_name(line, record)}"
            writer.document(line, pages[text], text)
    for path, line, record in claims:
        queries = path.name.partition(".jsonl")[0].removeprefix("claim_")
        _write(writer, queries, line, record, pages["\n".join(_sentences(line, record))])


def _name(line: Line, record: Row) -> str:
    return text_of(line, object_of(line, record.get("meta"), "meta"), "id")


def _sentences(line: Line, record: Row) -> list[str]:
    sentences = list_of(line, record, "evidence")
    if not all(isinstance(sentence, str) for sentence in sentences):
        raise line.fault("evidence: expected a list of sentences")
    return sentences


def _write(writer: DatasetWriter, queries: str, line: Line, record: Row, page: str) -> None:
    sentences, label = _sentences(line, record), text_of(line, record, "label")
    sets = [
        [whole_number(line, at, "supporting_sentences") for at in one]
        for one in list_of(line, record, "supporting_sentences")
        if isinstance(one, list)
    ]
    beyond = [at for one in sets for at in one if not 0 <= at < len(sentences)]
    if beyond:
        raise line.fault(f"supporting_sentences: {beyond[0]} is beyond the {plural(len(sentences), 'sentence')}")
    begins = [0]
    for sentence in sentences:
        begins.append(begins[-1] + len(sentence) + 1)
    kept = [at for at in dict.fromkeys(sets[0] if sets else []) if sentences[at].strip()]
    evidence = []
    for at in kept:
        bare = sentences[at].strip()
        start = begins[at] + len(sentences[at]) - len(sentences[at].lstrip())
        evidence.append(span(page, start, start + len(bare), bare))
    writer.counts.add(f"{queries} supporting sentences", len(evidence))
    metadata = {"type": label} | ({"alternatives": sets[1:]} if sets[1:] else {})
    query = NewQuery(_name(line, record), text_of(line, record, "claim"), evidence, metadata=metadata)
    writer.query(line, queries, query)
