"""A stranger's path: a clean environment, the wheel, 200 pages of a package's documentation, and an answer to show.

It needs the package index, and is skipped, visibly, where there is none.
"""

import os
import resource
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"sphinx==9.0.4": "doc", "scrapy==2.19.0": "docs"}
"""Source distributions with documentation, and the folder it is in: together 209 pages."""
QUESTIONS = {
    "How are files left out of a build?": "glob-style patterns that should be excluded when looking for source files.",
    "What is a builder?": "A class (inheriting from Builder) that takes",
    "What is a spider?": "Spiders are classes that define how a site, or a group of sites, is scraped",
}
MOST_COMMANDS = 12
MOST_CPU_SECONDS = 360


class Stranger:
    """Types commands, and counts them and their CPU time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commands = folder, 0
        kept = ("HOME", "PATH", "LANG", "TMPDIR", "PIP_CONFIG_FILE", "PIP_INDEX_URL", "SSL_CERT_FILE")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self._before = self._cpu()

    @staticmethod
    def _cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    @property
    def cpu_seconds(self) -> float:
        return self._cpu() - self._before

    def types(self, *command: str | Path, cwd: Path | None = None) -> str:
        self.commands += 1
        done = subprocess.run(
            list(map(str, command)),
            cwd=cwd or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        return done.stdout


def documents(folder: Path) -> Path:
    """The documentation of the packages, downloaded from the package index."""
    for package, inside in PACKAGES.items():
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", package]
        done = subprocess.run([*command, "-d", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no package index, from which {package} could be downloaded: {done.stderr[-200:]}")
        (archive,) = folder.glob(f"{package.partition('==')[0]}-*.tar.gz")
        with tarfile.open(archive) as content:
            content.extractall(folder / "unpacked", members=_inside(content, inside), filter="data")
    return folder / "unpacked"


def _inside(content: tarfile.TarFile, folder: str) -> Iterator[tarfile.TarInfo]:
    return (one for one in content if one.name.partition("/")[2].startswith(f"{folder}/"))


def wheel(folder: Path) -> Path:
    """The wheel of this repository."""
    command: Sequence[str | Path] = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel could be built: {done.stderr[-200:]}")
    (made,) = folder.glob("*.whl")
    return made


def test_the_path_of_a_stranger(tmp_path: Path) -> None:
    """From nothing to a report, in at most 12 commands and 6 minutes of CPU time; each says what is next."""
    docs, package = documents(tmp_path), wheel(tmp_path)
    stranger = Stranger(tmp_path)
    stranger.types(sys.executable, "-m", "venv", "env")
    commands = tmp_path / "env" / "bin"
    stranger.types(commands / "pip", "install", "-q", f"{package}[documents]")
    out = stranger.types(commands / "harness", "init", "handbook", "--docs", docs)
    assert int(out.split()[0]) >= 200
    assert "next: cd handbook && harness data evidence handbook --to validation" in out
    project = tmp_path / "handbook"
    for question, quote in QUESTIONS.items():
        given = ("--to", "validation", "--query", question, "--quote", quote)
        stranger.types(commands / "harness", "data", "evidence", "handbook", *given, cwd=project)
    assert "0 errors" in stranger.types(commands / "harness", "data", "check", "handbook", cwd=project)
    plan = stranger.types(commands / "harness", "plan", "experiment.yaml", cwd=project)
    assert "6 trials, 0 of them stored" in plan
    assert "time: " in plan
    run = stranger.types(commands / "harness", "run", "experiment.yaml", cwd=project)
    assert "recall@1000t against the baseline 'fixed · bm25'" in run
    assert "no intervals: 3 clusters of queries" in " ".join(
        run.split()
    )  # three questions decide nothing, and it says so
    stranger.types(commands / "harness", "report", "experiment.yaml", cwd=project)
    assert (project / "handbook.html").stat().st_size > 100_000
    assert stranger.commands <= MOST_COMMANDS
    assert stranger.cpu_seconds <= MOST_CPU_SECONDS, f"{stranger.cpu_seconds:.0f} s"
    print(f"{stranger.commands} commands, {stranger.cpu_seconds:.0f} s of CPU time")
