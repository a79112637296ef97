"""What the harness costs beside the work it cannot avoid: ratios within one run, since machines differ and are noisy.

`make bench`, or `python -P bench/bench.py PART...` with some of: cold warm workers selector memory judging reporting
importing published. No time is asserted; `memory` takes minutes and needs an imported data set named by BENCH_DATA (or
datasets/chroma), `published` the data sets of experiments/published below HARNESS_SHARED_DATA.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HARNESS = str(Path(sys.executable).parent / "harness")

HEAD = """
name: bench
data: {data}
queries: validation
chunker: {{fixed: {{size: 128}}}}
embedder: {embedder}
retriever: {{dense: {{depth: 50}}}}
"""
COLD = """
grid:
  chunker: [{fixed: {size: 128}}, {fixed: {size: 256}}, {sentence: {size: 128, overlap: 25}}, {recursive: {size: 256}}]
  retriever: [dense, bm25, hybrid]
"""
FLOOR = """
import sys, json
from harness.components.embedders import Local
texts, queries = json.load(open(sys.argv[1]))
Local().embed(texts); Local().embed(queries, queries=True)
"""


def children_cpu(command: list[str], cwd: Path) -> tuple[float, float, str]:
    """CPU seconds and greatest resident memory (MB) of a finished child process, and what it printed."""
    program = (
        "import subprocess, sys, resource; done = subprocess.run(sys.argv[1:], capture_output=True, text=True);"
        "print(done.stdout); print(done.stderr, file=sys.stderr); u = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"
    )
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=cwd, capture_output=True, text=True, check=True, env=environment
    )
    *printed, last = done.stdout.strip().splitlines()
    if "Traceback" in done.stderr or "harness:" in done.stderr:
        raise SystemExit(done.stderr)
    cpu, memory = map(float, last.split())
    return cpu, memory, "\n".join(printed)


def experiment(folder: Path, body: str, *, embedder: str = "local", data: Path = ROOT / "datasets/cookbook") -> str:
    path = folder / "bench.yaml"
    path.write_text(HEAD.format(data=data, embedder=embedder) + body)
    return str(path)


def cold(folder: Path) -> None:
    """A cold grid of 12 trials against embedding its distinct texts once, both from process start."""
    file = experiment(folder, COLD)
    cpu, memory, printed = children_cpu([HARNESS, "run", file, "--no-mlflow"], folder)
    texts = [sorted(distinct_texts(file, folder), key=len, reverse=True), queries_of(file, folder)]
    (folder / "texts.json").write_text(json.dumps(texts))
    floor, _, _ = children_cpu([sys.executable, "-P", "-c", FLOOR, str(folder / "texts.json")], folder)
    embedded = next(line for line in printed.splitlines() if "computed: " in line)
    print(
        f"cold grid: {cpu:.1f} CPU s, its {sum(map(len, texts))} distinct texts alone {floor:.1f}: x {cpu / floor:.2f}"
    )
    print(f"  {embedded}; {memory:.0f} MB at most")


def distinct_texts(file: str, folder: Path) -> set[str]:
    session = opened(file, folder)
    return {text for trial in session.trials for text in session.outputs(trial).passages.texts}


def queries_of(file: str, folder: Path) -> list[str]:
    session = opened(file, folder)
    return session.outputs(session.trials[0]).work.query_texts


def opened(file: str, folder: Path) -> Any:
    from harness import read_experiment
    from harness.running.session import Session

    return Session(read_experiment(Path(file)), folder / ".harness")


def warm(folder: Path) -> None:
    """A grid of 100 trials whose stages are all stored."""
    depths = ", ".join(map(str, range(1, 21)))
    grid = f"grid:\n  selector.top_k.k: [{depths}]\n  chunker.size: [64, 96, 128, 192, 256]\n"
    file = experiment(folder, "selector: [{top_k: {k: 5}}]\n" + grid, embedder="hashing")
    first, _, _ = children_cpu([HARNESS, "run", file, "--no-mlflow"], folder)
    again, memory, printed = children_cpu([HARNESS, "run", file, "--no-mlflow"], folder)
    print(
        f"warm grid of 100 trials: {again:.1f} CPU s, cold {first:.1f}: x {again / first:.2f}; {memory:.0f} MB at most"
    )
    print(f"  {next(line for line in printed.splitlines() if 'computed: ' in line)}")


def workers(folder: Path) -> None:
    """100 trials that differ in their selectors, on two workers against one."""
    grid = f"grid:\n  selector.mmr.k: {list(range(1, 51))}\n  selector.mmr.relevance: [0.3, 0.7]\n"
    command = [HARNESS, "run", experiment(folder, "", embedder="hashing"), "--no-mlflow"]
    children_cpu(command, folder)  # the stages that all trials share
    experiment(folder, "selector: [{mmr: {k: 5}}]\n" + grid, embedder="hashing")
    shutil.copytree(folder / ".harness", folder / "shared")
    took = {}
    for count in (1, 2):
        shutil.rmtree(folder / ".harness")
        shutil.copytree(folder / "shared", folder / ".harness")
        begin = time.perf_counter()
        cpu, _, _ = children_cpu([*command, "--workers", str(count)], folder)
        took[count] = time.perf_counter() - begin, cpu
    (alone, one), (together, two) = took[1], took[2]
    print(f"100 selector trials on two workers: {together:.1f} s, on one {alone:.1f}: x {together / alone:.2f}")
    print(f"  CPU s {two:.1f} and {one:.1f}: x {two / one:.2f}")


def selector(folder: Path) -> None:
    """What one more trial costs that differs only in its selector."""
    from harness import read_experiment
    from harness.running.session import Session

    grid = "grid:\n  selector: [%s]\n"
    for name, steps in {
        "top_k": [f"{{top_k: {{k: {k}}}}}" for k in range(1, 11)],
        "threshold": [f"{{threshold: {{score: 0.{k}}}}}" for k in range(1, 10)],
        "dedup, top_k": [f"[{{dedup: {{similarity: 0.{k}}}}}, top_k]" for k in range(85, 95)],
        "normalize, adaptive": [f"[normalize, {{adaptive: {{max_k: {k}}}}}]" for k in range(5, 15)],
        "query_adaptive": [f"{{query_adaptive: {{specific_words: {k}}}}}" for k in range(5, 15)],
        "task_k, confidence_k": [f"[task_k, {{confidence_k: {{max_k: {k}}}}}]" for k in range(5, 15)],
        "elbow": [f"{{elbow: {{max_k: {k}}}}}" for k in range(5, 15)],
        "mmr": [f"{{mmr: {{k: {k}}}}}" for k in range(5, 15)],
        "diversify": [f"{{diversify: {{threshold: 0.{k}}}}}" for k in range(20, 30)],
        "metadata_boost": [f"[{{metadata_boost: {{now: 2025-01-01}}}}, {{top_k: {{k: {k}}}}}]" for k in range(5, 15)],
        "multi_signal": [f"[{{multi_signal: {{now: 2025-01-01}}}}, {{top_k: {{k: {k}}}}}]" for k in range(5, 15)],
        "merge_adjacent": [f"[merge_adjacent, {{top_k: {{k: {k}}}}}]" for k in range(5, 15)],
        "token_budget": [f"{{token_budget: {{tokens: {k}00}}}}" for k in range(5, 15)],
    }.items():
        file = experiment(folder, grid % ", ".join(steps), embedder="hashing")
        session = Session(read_experiment(Path(file)), folder / ".harness")

        def score(trial: Any, session: Session = session) -> None:
            session.outputs(trial).scores  # noqa: B018 - reading makes it

        queries = len(session.outputs(session.trials[0]).work.query_texts)
        score(session.trials[0])
        spent = [cpu_of(score, trial) for trial in session.trials[1:]]
        per_hundred = 1000 * sum(spent) / len(spent) / queries * 100
        print(f"one more trial, selector {name:<13}: {per_hundred:.0f} CPU ms per 100 queries")


def cpu_of(work: Callable[..., object], *arguments: object) -> float:
    begin = time.process_time()
    work(*arguments)
    return time.process_time() - begin


def memory(folder: Path) -> None:
    """Peak memory and CPU of a grid on a larger corpus."""
    data = Path(os.environ.get("BENCH_DATA", ROOT / "datasets/chroma")).resolve()
    if not data.is_dir():
        print(f"memory: no data set at {data}; left out")
        return
    cpu, peak, printed = children_cpu([HARNESS, "run", experiment(folder, COLD, data=data)], folder)
    print(f"cold grid on {data.name}: {cpu:.0f} CPU s, {peak:.0f} MB at most")
    print(f"  {next(line for line in printed.splitlines() if 'computed: ' in line)}")


def judging(folder: Path) -> None:
    """What a call to a judge costs this machine, and what stored judgments do, against a local server."""
    sys.path.insert(0, str(ROOT / "tests/support"))
    from judged_questions import case, put
    from openai_server import Server

    serving = (
        f"import sys, time; sys.path.insert(0, {str(ROOT / 'tests/support')!r}); from openai_server import Server\n"
    )
    serving += "with Server() as server: print(server.url, flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", serving], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    os.environ |= {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": process.stdout.readline().strip()}
    passages = [f"{'word ' * 200}{at}" for at in range(10)]
    cases = [case(f"Question {at}?", [f"{passage} {at}" for passage in passages]) for at in range(1000)]
    put(cases[:1], folder / "warm-up")
    begin, spent = time.perf_counter(), cpu_of(put, cases[:500], folder / "s")
    asked = time.perf_counter() - begin
    print(f"500 calls of 10 passages: {1000 * spent / 500:.1f} CPU ms a call, {500 / asked:.0f} calls a second")
    put(cases, folder / "s")
    begin = time.perf_counter()
    put(cases, folder / "s")
    stored = time.perf_counter() - begin
    print(f"10,000 stored pairs: {stored:.2f} s; asking them took x {2 * asked / stored:.0f}")
    process.kill()
    with Server(rate=25) as server:
        os.environ["OPENAI_BASE_URL"] = server.url
        put([case(f"Q {at}?", ["Text."]) for at in range(300)], folder / "slow", retry_policy=None)
        print(f"a server that bears 25 requests a second: {len(server.calls) / 300:.3f} requests a call")


def reporting(folder: Path) -> None:
    """Comparing and reporting on 100 trials of 500 queries, from process start, against running them warm."""
    from harness.data.manifest import Manifest, PinnedFile, write_manifest

    data = folder / "large"
    (data / "queries").mkdir(parents=True)
    source = ROOT / "datasets/cookbook/corpus.jsonl"
    documents = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    queries = []
    for number in range(500):
        doc = documents[number % len(documents)]
        start = (number * 397) % (len(doc["text"]) - 200)
        place = {"doc": doc["id"], "start": start, "end": start + 120}
        queries.append({"id": f"q{number}", "text": doc["text"][start + 20 : start + 90], "evidence": [place]})
    for name, records in (("corpus", documents), ("queries/validation", queries)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    sets = {"validation": PinnedFile(data / "queries/validation.jsonl", "")}
    write_manifest(Manifest(data, "large", PinnedFile(data / "corpus.jsonl", ""), sets))
    depths = ", ".join(map(str, range(1, 21)))
    grid = f"selector: [dedup, {{top_k: {{k: 5}}}}]\ngrid:\n  selector.top_k.k: [{depths}]\n"
    file = experiment(folder, grid + "  chunker.size: [64, 96, 128, 192, 256]\n", embedder="hashing", data=data)
    run = [HARNESS, "run", file, "--no-mlflow"]
    children_cpu(run, folder)
    warm, _, _ = children_cpu(run, folder)
    compared, _, _ = children_cpu([HARNESS, "compare", file, "--json"], folder)
    reported, memory, told = children_cpu([HARNESS, "report", file, "--out", "r.html"], folder)
    print(f"100 trials x 500 queries: compare {compared:.1f} CPU s, x {compared / warm:.1f} of running them warm")
    print(f"  report {reported:.1f} CPU s, x {reported / warm:.1f}; {memory:.0f} MB at most")
    print(f"  {told.splitlines()[-1]}")


MILLION = 1_000_000
_TEXT = "Salt the water until it tastes of the sea, then boil the pasta for nine minutes and drain it. " * 5


def importing(folder: Path) -> None:
    """Importing a million documents against a tenth of them, format by format: memory must not grow with them."""
    for kind, write in WRITERS.items():
        costs = []
        for count in (MILLION // 10, MILLION):
            source = folder / f"{kind}-{count}"
            source.mkdir()
            write(source, count)
            target = folder / f"out-{kind}-{count}"
            costs.append(children_cpu([HARNESS, "data", "import", kind, str(source), str(target)], folder)[:2])
            lines = sum(1 for _ in (target / "corpus.jsonl").open("rb"))
            assert lines == count, (kind, lines)
            shutil.rmtree(source)
            shutil.rmtree(target)
        (few, small), (many, large) = costs
        print(f"import {kind}: a million documents in {many:.0f} CPU s, {large:.0f} MB at most;", end=" ")
        print(f"against a tenth x {many / few:.1f} the time, x {large / small:.2f} the memory")


def _write_beir(source: Path, count: int) -> None:
    with (source / "corpus.jsonl").open("w") as file:
        file.writelines(f'{{"_id": "d{n}", "title": "T{n}", "text": "{_TEXT}"}}\n' for n in range(count))
    (source / "queries.jsonl").write_text('{"_id": "q", "text": "How salty?"}\n')
    (source / "qrels").mkdir()
    (source / "qrels/test.tsv").write_text(f"q\td{count - 1}\t1\n")


def _write_trec(source: Path, count: int) -> None:
    with (source / "docs.trec").open("w") as file:
        file.writelines(f"<DOC>\n<DOCNO>d{n}</DOCNO>\n{_TEXT}\n</DOC>\n" for n in range(count))
    (source / "topics.tsv").write_text("q\tHow salty?\n")
    (source / "qrels").write_text(f"q 0 d{count - 1} 1\n")


def _write_csv(source: Path, count: int) -> None:
    with (source / "documents.csv").open("w") as file:
        file.write("id,text\n")
        file.writelines(f'd{n},"{_TEXT}"\n' for n in range(count))
    (source / "queries.csv").write_text(f"id,question,doc,quote\nq,How salty?,d{count - 1},tastes of the sea\n")


def _write_jsonl(source: Path, count: int) -> None:
    with (source / "documents.jsonl").open("w") as file:
        file.writelines(f'{{"id": "d{n}", "text": "{_TEXT}"}}\n' for n in range(count))
    (source / "queries.jsonl").write_text(f'{{"id": "q", "question": "How salty?", "doc": "d{count - 1}"}}\n')


def _write_huggingface(source: Path, count: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("_id", pa.string()), ("text", pa.string())])
    (source / "corpus").mkdir()
    with pq.ParquetWriter(source / "corpus/corpus-00000-of-00001.parquet", schema) as writer:
        for start in range(0, count, 20_000):
            rows = [{"_id": f"d{n}", "text": _TEXT} for n in range(start, start + 20_000)]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    pq.write_table(pa.Table.from_pylist([{"_id": "q", "text": "How salty?"}]), source / "queries.parquet")
    judged = [{"query-id": "q", "corpus-id": f"d{count - 1}", "score": 1}]
    pq.write_table(pa.Table.from_pylist(judged), source / "test.parquet")


WRITERS = {
    "beir": _write_beir,
    "trec": _write_trec,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "huggingface": _write_huggingface,
}


def published(folder: Path) -> None:
    """The tables of experiments/published, ours beside theirs, on the data that HARNESS_SHARED_DATA holds."""
    shared = Path(os.environ.get("HARNESS_SHARED_DATA", ROOT.parent / "shared" / "data"))
    places = _published_data(shared, folder)
    environment = {**os.environ, **{name: str(made) for name, made in places.items()}, "PYTHONSAFEPATH": "1"}
    for path in sorted((ROOT / "experiments/published").glob("*.yaml")):
        if path.stem.removeprefix("beir_").upper() not in places:
            print(f"{path.name}: not run, its data set is not at {shared}; set HARNESS_SHARED_DATA")
            continue
        for command in (["run", str(path), "--no-mlflow"], ["compare", str(path), "--published"]):
            done = subprocess.run(
                [HARNESS, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode > 1 or "Traceback" in done.stderr:
                raise SystemExit(done.stderr)
        print(f"{path.name}: {done.stdout}")


def _published_data(shared: Path, folder: Path) -> dict[str, Path]:
    """The data sets that are there, imported, by the variables that the tables name them with."""
    from harness.data.importers import Options, import_dataset

    made: dict[str, Path] = {}
    if (shared / "chroma-chunking").is_dir():
        made["CHROMA"] = folder / "chroma"
        import_dataset("chroma", shared / "chroma-chunking", made["CHROMA"])
    if (shared / "trec-eval").is_dir():
        made["TREC_EVAL"] = folder / "trec-eval"
        options = Options(qrels={"validation": "qrels.test"}, runs={"results": "results.test"})
        import_dataset("trec", shared / "trec-eval", made["TREC_EVAL"], options=options)
    for variable in ("SCIFACT", "NFCORPUS"):
        source, copy = shared / f"beir-{variable.lower()}", folder / "source" / variable
        if source.is_dir():
            # The judgments of the test queries alone, which are then a set like any other.
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("train.tsv", "dev.tsv"))
            made[variable] = folder / variable
            import_dataset("beir", copy, made[variable])
    if (shared / "llmjudge").is_dir():
        source = folder / "source" / "llmjudge"
        source.mkdir(parents=True)
        made["LLMJUDGE_PEOPLE"] = shared / "llmjudge" / "llmjudge_test_qrel_idx.txt"
        made["LLMJUDGE_LABELS"] = shared / "llmjudge" / "labels"
        pairs = [line.split() for line in made["LLMJUDGE_PEOPLE"].read_text().splitlines() if line.strip()]
        (source / "qrels").write_text("".join(" ".join(pair) + "\n" for pair in pairs))
        (source / "pool").write_text("".join(f"{q} Q0 {p} 1 {-at} pool\n" for at, (q, _, p, _) in enumerate(pairs)))
        made["LLMJUDGE"] = folder / "llmjudge"
        import_dataset("trec", source, made["LLMJUDGE"], options=Options(runs={"pool": "pool"}))
    return made


PARTS = {
    "cold": cold,
    "warm": warm,
    "workers": workers,
    "selector": selector,
    "memory": memory,
    "judging": judging,
    "reporting": reporting,
    "importing": importing,
    "published": published,
}

if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as name:
            PARTS[part](Path(name))
