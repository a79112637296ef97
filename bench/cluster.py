"""SciFact on Dask workers that share nothing but a bucket: cost, and what `kill -9` changes (nothing) and repeats.

`python -P bench/cluster.py [EMBEDDER]` with the tests' extra installed and SciFact below HARNESS_SHARED_DATA. It runs
24 trials on this machine, then with a real scheduler, workers in mount namespaces of their own and a real S3 server:
undisturbed, with one of two workers killed at ten moments, with the launching process killed at five, and through Ray
if it is installed, each in a new place of the bucket. Takes about 15 minutes; prints figures, asserts nothing.

Cost is compared with one worker, against one process with one thread: where two virtual cores share a real one, two
busy processes each take more CPU seconds for the same work.
"""

import contextlib
import importlib.util
import logging
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from distributed import Client

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from bucket_server import KEYS, new_bucket, served
from cluster_project import computed, numbers
from dask_cluster import Cluster, scheduler
from project import harness, started

from harness.data.importers import import_dataset

EXPERIMENT = """
name: scifact
data: scifact
queries: test
tokenizer: words
chunker: {fixed: {size: 100}}
embedder: %s
metrics: [recall@5, ndcg@10, mrr]
grid:
  chunker: [fixed: {size: 60}, fixed: {size: 120}, recursive: {size: 80}, sentence: {size: 100}]
  retriever: [bm25: {depth: 50}, dense: {depth: 50}, hybrid: {depth: 50}]
  selector: [[{top_k: {k: 10}}], [dedup, {top_k: {k: 10}}]]
"""
WORKER_KILLS, LAUNCH_KILLS = 10, 5
SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON": '{"OMP_NUM_THREADS": 1, "MALLOC_TRIM_THRESHOLD_": 134217728}',
}
"""What docs/cluster.md advises for workers."""


class Puts(logging.Handler):
    """Counts the artifacts that were written to the bucket, and those that were made although one was there."""

    def __init__(self) -> None:
        super().__init__()
        self.status: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        found = re.search(
            r'"(?:\x1b\[[\d;]*m)*PUT /\S*objects/\S+ HTTP/1.1(?:\x1b\[[\d;]*m)*" (\d+)', record.getMessage()
        )
        if found:
            self.status.append(found[1])

    def take(self) -> str:
        made, again = self.status.count("200"), len(self.status) - self.status.count("200")
        self.status.clear()
        return f"{made} artifacts written, {again} made twice"


@contextlib.contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A scheduler with workers, all of them ready, that see neither the project nor each other's files."""
    with scheduler() as made:
        for name in ("one", "two")[:workers]:
            (folder / name).mkdir(exist_ok=True)
            hidden = (folder / "datasets", folder / "cache", folder / name)
            made.worker(hidden=hidden, HARNESS_CACHE=str(folder / name), **SETTINGS)
        with Client(made.on.replace("dask:", "tcp:"), set_as_default=False) as client:
            client.wait_for_workers(workers)
        yield made


def worker_processes(made: Cluster) -> list[psutil.Process]:
    """The processes that run tasks: those that the nannies have spawned."""
    found = []
    for nanny in made.processes[1:]:
        children = psutil.Process(nanny.pid).children(recursive=True)
        found += [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    return found


def cpu(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(folder: Path, *options: str) -> tuple[str, float, float]:
    """The output of a run, the CPU seconds of the launching process, and its wall time."""
    before, begin = children_cpu(), time.monotonic()
    process = started(folder, "run", "x.yaml", "--no-mlflow", *options)
    out, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors)
    return out, children_cpu() - before, time.monotonic() - begin


def after(process: "subprocess.Popen[str]", seconds: float) -> bool:
    """Wait so long; whether the process is still running then."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return False
    return True


def through_ray(folder: Path, address: str, near: list[dict[str, str]], puts: Puts, wall: float) -> None:
    """The same in a Ray cluster of two workers, one of which is killed in the middle."""
    place = new_bucket(address)
    options = ("--on", "ray://local", "--workers", "2", "--store", place)
    process = started(folder, "run", "x.yaml", "--no-mlflow", *options)
    running, killed = after(process, wall / 2), 0
    for one in psutil.process_iter(["cmdline"]):
        if any("ray::make_stages" in part or "ray::embed_texts" in part for part in one.info["cmdline"] or ()):
            one.kill()
            killed = one.pid
            break
    _, errors = process.communicate()
    same = process.returncode == 0 and numbers(folder, "--store", place) == near
    print(f"Ray, worker {killed or 'not found, none'} killed, running {running}: same: {same}; {puts.take()}")
    print(errors if process.returncode else "", end="", flush=True)


def main(folder: Path, embedder: str) -> None:
    import_dataset("beir", Path(os.environ["HARNESS_SHARED_DATA"]) / "beir-scifact", folder / "datasets/scifact")
    (folder / "x.yaml").write_text(EXPERIMENT % embedder)
    (folder / "cache").mkdir()
    os.environ["OMP_NUM_THREADS"] = "1"
    out, near_cpu, near_wall = timed(folder, "--store", "near")
    wanted, near = computed(out), numbers(folder, "--store", "near")
    print(f"one machine: {near_cpu:.1f} CPU s, {near_wall:.0f} s", flush=True)
    puts = Puts()
    logging.getLogger("werkzeug").addHandler(puts)
    logging.getLogger("werkzeug").setLevel(logging.INFO)
    logging.getLogger("werkzeug").propagate = False
    with served() as address:
        os.environ |= {**KEYS, "AWS_ENDPOINT": address, "HARNESS_CACHE": str(folder / "cache")}
        with cluster(folder, workers=1) as made:
            place, before = new_bucket(address), cpu(worker_processes(made))
            out, launching, wall = timed(folder, "--on", made.on, "--store", place)
            workers = cpu(worker_processes(made)) - before
            same = computed(out) == wanted and numbers(folder, "--store", place) == near
            total = launching + workers
            print(f"one worker: {total:.1f} CPU s ({total / near_cpu:.2f} of one machine), {wall:.0f} s", flush=True)
            print(f"  launching process {launching:.1f} CPU s: {launching / total:.1%}; same: {same}; {puts.take()}")
        with cluster(folder) as made:
            _, _, wall = timed(folder, "--on", made.on, "--store", new_bucket(address))
            print(f"two workers: {wall:.0f} s; {puts.take()}", flush=True)
        for kill in range(1, WORKER_KILLS + 1):
            with cluster(folder) as made:
                place = new_bucket(address)
                process = started(folder, "run", "x.yaml", "--no-mlflow", "--on", made.on, "--store", place)
                running = after(process, wall * kill / (WORKER_KILLS + 1))
                busiest = max(worker_processes(made), key=lambda one: one.cpu_percent(0.1))
                busiest.send_signal(signal.SIGKILL)
                _, errors = process.communicate()
                same = process.returncode == 0 and numbers(folder, "--store", place) == near
                print(f"worker killed at {kill}/{WORKER_KILLS + 1}, running {running}: same: {same}; {puts.take()}")
                print(errors if process.returncode else "", end="", flush=True)
        for kill in range(1, LAUNCH_KILLS + 1):
            with cluster(folder) as made:
                place = new_bucket(address)
                process = started(folder, "run", "x.yaml", "--no-mlflow", "--on", made.on, "--store", place)
                running = after(process, wall * kill / (LAUNCH_KILLS + 1))
                process.kill()
                process.communicate()
                finished = puts.take()
                again = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", made.on, "--store", place).stdout
                same = numbers(folder, "--store", place) == near
                print(f"launch killed at {kill}/{LAUNCH_KILLS + 1}, running {running}: {finished}")
                print(
                    f"  again: same: {same}; {puts.take()}; {again.partition('computed: ')[2].splitlines()[0]}",
                    flush=True,
                )
        if importlib.util.find_spec("ray"):
            through_ray(folder, address, near, puts, wall)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_folder:
        main(Path(made_folder), *(sys.argv[1:] or ["hashing"]))
