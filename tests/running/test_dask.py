"""A real Dask scheduler with workers that share nothing but a bucket: the same numbers, each piece of work once."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from bucket_server import new_bucket, served, use
from cluster_project import EXPERIMENT, OWN, PACKED, computed, numbers
from dask_cluster import Cluster, can_hide, scheduler
from project import harness, one_line, started

from harness.core.errors import ConfigError
from harness.running.engines import open_engine
from harness.storage.bucket import bucket_of, local_folder
from harness.storage.vector_file import read_vectors

pytestmark = pytest.mark.skipif(not can_hide(), reason="this user may not unshare mount namespaces")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@pytest.fixture
def folder(garden_data: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, with a bucket as its store."""
    for name in ("cache", "one", "two"):
        (tmp_path / name).mkdir()
    use(monkeypatch, address, tmp_path / "cache")
    monkeypatch.setenv("HARNESS_STORE", new_bucket(address))
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    (tmp_path / "own.py").write_text(OWN % "pass")
    return tmp_path


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    """A scheduler with two workers that see neither the project nor each other's files."""
    with scheduler() as made:
        for name in ("one", "two"):
            # Folders in place of which a worker sees empty ones of its own.
            hidden = (folder / "datasets", folder / "cache", folder / name)
            made.worker(hidden=hidden, HARNESS_CACHE=str(folder / name))
        yield made


def test_the_same_numbers_each_artifact_once(folder: Path, cluster: Cluster) -> None:
    """And each text is embedded once; a machine with an empty disk then needs to do nothing."""
    far = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on).stdout
    near = harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near").stdout
    assert computed(far) | PACKED == computed(near)
    assert numbers(folder) == numbers(folder, "--store", "near")
    store = local_folder(os.environ["HARNESS_STORE"])
    bucket = bucket_of(store)
    assert bucket is not None
    keys: dict[str, list[bytes]] = {}
    for entry in bucket.entries("vectors/"):
        _, space, name = entry.name.split("/")
        (folder / name).write_bytes(bucket.get(entry.name) or b"")
        found = read_vectors(folder / name)
        assert found is not None
        keys.setdefault(space, []).extend(found.keys.tolist())
    assert all(len(set(texts)) == len(texts) for texts in keys.values())
    assert sum(map(len, keys.values())) == computed(far)["embed"]
    again = harness(folder, "run", "x.yaml", "--no-mlflow", HARNESS_CACHE=str(folder / "empty")).stdout
    assert "computed: nothing" in again


def test_a_worker_that_dies_is_replaced(folder: Path, cluster: Cluster) -> None:
    """Killed at its first document: the task is repeated elsewhere, and no number changes."""
    killed = folder / "killed"
    die = f"\n        mark = Path({str(killed)!r})\n        if not mark.exists():\n            mark.touch()\n"
    (folder / "own.py").write_text(OWN % f"{die}            os.kill(os.getpid(), signal.SIGKILL)")
    harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on)
    assert killed.exists()
    harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near")
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_a_worker_that_falls_silent(folder: Path, cluster: Cluster) -> None:
    """As if its network were cut: after a while, its task is repeated elsewhere."""
    silent = folder / "silent"
    stop = f"\n        mark = Path({str(silent)!r})\n        if not mark.exists():\n            mark.touch()\n"
    (folder / "own.py").write_text(OWN % f"{stop}            os.kill(os.getpid(), signal.SIGSTOP)")
    harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on)
    assert silent.exists()
    harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near")
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_a_scheduler_that_comes_back(folder: Path, cluster: Cluster) -> None:
    """Silent for some seconds in the middle of a run, as in a network that is cut and restored: the run goes on."""
    mark, process = folder / "stopped", cluster.processes[0].pid
    stop = f"\n        mark = Path({str(mark)!r})\n        if not mark.exists():\n            mark.touch()\n"
    stop += f"            os.kill({process}, signal.SIGSTOP)\n"
    stop += f"            os.system('(sleep 3; kill -CONT {process}) &')"
    (folder / "own.py").write_text(OWN % stop)
    harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on)
    assert mark.exists()
    harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near")
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_a_task_that_kills_every_worker(folder: Path, cluster: Cluster) -> None:
    """One line, after two deaths; what is finished is stored, and the next run goes on."""
    (folder / "own.py").write_text(OWN % "os.kill(os.getpid(), signal.SIGKILL)")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on, code=2)
    assert "2 workers died one after another at the same task (killed, or out of memory); run again" in done.stderr
    assert "Traceback" not in done.stderr
    (folder / "own.py").write_text(OWN % "pass")
    again = computed(harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on).stdout)
    assert "tokenize" not in again


def test_a_scheduler_that_is_gone(folder: Path, cluster: Cluster) -> None:
    """In the middle of a run: one line, and a run with another engine goes on."""
    process = cluster.processes[0].pid
    (folder / "own.py").write_text(OWN % f"os.kill({process}, signal.SIGKILL)")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on, code=2)
    assert f"{cluster.on}: the scheduler is gone; start it, and run again to resume" in done.stderr
    assert "Traceback" not in done.stderr
    (folder / "own.py").write_text(OWN % "pass")
    again = computed(harness(folder, "run", "x.yaml", "--no-mlflow").stdout)
    assert "tokenize" not in again


def test_a_launching_process_that_is_killed(folder: Path, cluster: Cluster) -> None:
    """By a worker, at its first document: the next run computes only what is missing, and no number changes."""
    killed, pid = folder / "killed", folder / "pid"
    kill = f"\n        mark, pid = Path({str(killed)!r}), Path({str(pid)!r})\n        if not mark.exists():\n"
    kill += "            while not (pid.exists() and pid.read_text()):\n                pass\n"
    kill += "            mark.touch()\n            os.kill(int(pid.read_text()), signal.SIGKILL)"
    (folder / "own.py").write_text(OWN % kill)
    process = started(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on)
    pid.write_text(str(process.pid))
    process.communicate()
    assert (process.returncode, killed.exists()) == (-signal.SIGKILL, True)
    again = computed(harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on).stdout)
    assert "tokenize" not in again
    harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near")
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_two_launching_processes_at_once(folder: Path, cluster: Cluster) -> None:
    """On one store and one cluster: both end well, with the numbers of one machine."""
    both = [started(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on) for _ in range(2)]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near")
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_faults_of_own_code_are_named(folder: Path, cluster: Cluster) -> None:
    """Not repeated, and reported as on one machine."""
    (folder / "own.py").write_text(OWN % "raise KeyError('weight')")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on, code=2, traceback=True)
    assert "chunker lines: document 'bed0': KeyError: 'weight' (own.py:10); 3 of 9 trials are not scored" in done.stderr


def test_own_code_that_a_worker_cannot_import(folder: Path, cluster: Cluster) -> None:
    """One line, before any work."""
    (folder / "helpers_of_mine.py").write_text("WIDTH = 3\n")
    (folder / "own.py").write_text("import sys\nsys.path.append('')\nimport helpers_of_mine\n" + OWN % "pass")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on, code=None)
    one_line(done, "worker tcp://127.0.0.1", "No module named 'helpers_of_mine'", "1 further worker as well")


def test_a_worker_with_other_data(folder: Path) -> None:
    """One line that names the file, before any work."""
    other = folder / "other"
    shutil.copytree(folder / "datasets", other)
    with (other / "garden/queries/validation.jsonl").open("a") as file:
        file.write('{"id": "more", "text": "Another query?"}\n')
    with scheduler() as made:
        made.worker(hidden=(folder / "cache",), bound={folder / "datasets": other})
        done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", made.on, code=None)
        one_line(
            done, "worker tcp://127.0.0.1", "validation.jsonl: is not the file of the launching process; copy that one"
        )


def test_a_store_that_is_not_shared(folder: Path) -> None:
    """A folder that a worker does not see: one line, before any work."""
    (folder / "near").mkdir()
    with scheduler() as made:
        made.worker(hidden=(folder / "near",))
        done = harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near", "--on", made.on, code=None)
        one_line(
            done, "worker tcp://127.0.0.1", "is not the store of the launching process; share a disk, or use s3://"
        )


def test_a_scheduler_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, also for an address that is none."""
    monkeypatch.setattr("harness.running.dask_engine._CONNECT", 0.5)
    for place in ("127.0.0.1:9", "nonsense:1"):
        with pytest.raises(ConfigError, match=f"^--on dask://{place}: no scheduler with a worker answers"):
            open_engine(2, f"dask://{place}")
    for place in ("", "nonsense:x", "8786"):
        with pytest.raises(ConfigError, match=f"^--on dask://{place}: expected dask://HOST:PORT, or dask://local"):
            open_engine(2, f"dask://{place}")


def test_an_executor_of_ones_own(folder: Path) -> None:
    """As in the documentation for Slurm: Dask's own executor, on a store that its workers see."""
    code = "from distributed import Client, LocalCluster\n\n\ndef workers(count):\n"
    code += "    cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)\n"
    (folder / "own_cluster.py").write_text(f"{code}    return Client(cluster).get_executor(pure=False)\n")
    options = ("--on", "own_cluster:workers", "--workers", "2", "--store", "near")
    out = harness(folder, "run", "x.yaml", "--no-mlflow", *options, PYTHONPATH=str(folder)).stdout
    assert computed(out)["score"] == 9


RERANKER = """
import os
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from harness.components import Reranker

@dataclass(frozen=True)
class Shortest(Reranker):
    k: int = 4

    def score(self, query, texts):
        with Path(%r).open("a") as file:
            file.write(f"{os.getpid()} {query} {len(texts)}\\n")
        return np.array([-float(len(text)) for text in texts])
"""


def test_a_plan_for_a_cluster(folder: Path, cluster: Cluster) -> None:
    """Timed on a worker, in a part of the bucket that is gone afterwards."""
    out = harness(folder, "plan", "x.yaml", "--time", "--on", cluster.on).stdout
    assert "\non 2 workers: about " in out
    assert "not measured" not in out
    bucket = bucket_of(local_folder(os.environ["HARNESS_STORE"]))
    assert bucket is not None
    assert [entry.name for entry in bucket.entries("samples/")] == []


def test_reranking_on_this_machine_is_done_by_workers(folder: Path, cluster: Cluster) -> None:
    """Each pair once, with the scores of one machine; only the launching process keeps them."""
    said = folder / "said"
    (folder / "own.py").write_text(RERANKER % str(said))
    steps = "selector: [own.py:Shortest]"
    (folder / "x.yaml").write_text(
        EXPERIMENT.replace("selector: [dedup, {top_k: {k: 6}}]", steps).replace(", own.py:Lines]", "]")
    )
    harness(folder, "run", "x.yaml", "--no-mlflow", "--on", cluster.on)
    far = [line for line in said.read_text().splitlines() if "warm-up" not in line]
    said.unlink()
    harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near")
    near = [line for line in said.read_text().splitlines() if "warm-up" not in line]
    assert sorted(line.split(" ", 1)[1] for line in far) == sorted(line.split(" ", 1)[1] for line in near)
    assert {line.split()[0] for line in far}.isdisjoint({line.split()[0] for line in near})
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_workers_that_join_later_get_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """And those that leave are no longer counted."""
    monkeypatch.setattr("harness.running.dask_engine._RECOUNT", -1.0)
    with scheduler() as made:
        made.worker()
        with open_engine(1, made.on) as engine:
            assert engine.at_once == 2
            second = made.worker("--no-nanny")
            while engine.at_once < 4:
                engine.wait([engine.submit(os.getpid)])
            second.terminate()
            while engine.at_once > 2:
                engine.wait([engine.submit(os.getpid)])


def test_a_local_cluster(folder: Path) -> None:
    """Started for the launch, and ended with it; named by HARNESS_ON, too."""
    out = harness(folder, "run", "x.yaml", "--no-mlflow", "--workers", "2", HARNESS_ON="dask://local").stdout
    assert computed(out)["score"] == 9
