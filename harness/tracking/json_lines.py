"""A tracker that writes to a folder: JSON lines that any tool can read, without a server.

`FOLDER/<experiment>/runs.jsonl` has a line per trial, launch, accepted baseline and scheduled run, distinguished by
`kind`. Next to it, `trials/<fingerprint>/` holds the per-query records, `launches/<launch>/` the report and the files
of the gate, and `baselines/<launch>/` the scores of an accepted baseline.
"""

import contextlib
import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.core.environment import environment
from harness.core.errors import ConfigError, DataError, HarnessError
from harness.evaluation.baseline import Baseline
from harness.evaluation.trial_means import curves, mean_interval
from harness.storage.digest import digest
from harness.storage.files import file_name
from harness.tracking.gate_record import GATE_RECORD, gate_record
from harness.tracking.json_lines_file import JsonLinesFile
from harness.tracking.records import FinishedGate, FinishedLaunch, FinishedTrial, ScheduledRun, TrendPoint
from harness.tracking.tracker import Links, Tracker
from harness.tracking.trial_files import exact_metrics, redact_all, write_per_query, write_trial

FORMAT = 1
"""Version of the format of `runs.jsonl`."""


class JsonLinesTracker(Tracker):
    """Logs the launches of one experiment to a folder; see the module's description.

    A line is appended after the files that it names are complete. Raises ConfigError if the folder cannot be used.
    """

    def __init__(self, experiment: str, folder: str) -> None:
        if not folder:
            raise ConfigError("tracking: jsonl: needs a folder: write jsonl:FOLDER, such as jsonl:results")
        self._experiment = experiment
        # Two names that differ only in characters that no folder can have get two folders.
        name = file_name(experiment)
        name += "" if name == experiment else f"-{digest(experiment)[:8]}"
        self._folder = Path(folder).resolve() / name
        try:
            self._runs = JsonLinesFile(self._folder / "runs.jsonl")
        except OSError as error:
            raise ConfigError(f"tracking: {self._folder}: cannot be written: {error.strerror or error}") from None
        self._trials: set[str] = set()
        self._read = 0

    @property
    def uri(self) -> str:
        """The destination."""
        return f"jsonl:{self._folder.parent}"

    def log_trial(self, trial: FinishedTrial, launch: str) -> None:
        """Log a trial unless it is logged already."""
        with _explained(self._folder), self._runs.writing():
            if not self._is_logged(trial.result.fingerprint):
                self._append("trial", {"launch": launch, **self._trial(trial)})

    def _trial(self, trial: FinishedTrial) -> dict[str, Any]:
        """The content of a trial's line, whose files are written now."""
        result, data = trial.result, trial.data
        files = self._folder / "trials" / result.fingerprint
        with _complete(files) as folder:
            for _ in write_per_query(folder, trial.rows()):
                pass
            write_trial(folder, result, trial.settings)
        return {
            "name": result.name,
            **exact_metrics(result),
            "intervals": {name: mean_interval(result, name) for name in trial.metrics},
            "curves": curves(result),
            "params": dict(result.params),
            "data": {"name": data.name, **data.hashes, "synthetic": data.synthetic},
            "source": trial.source,
            "final": trial.final,
            "files": files.relative_to(self._folder).as_posix(),
        }

    def log_launch(self, launch: FinishedLaunch) -> Links:
        """Log a launch with the comparison of each trial; return its folder."""
        files, tags = self._folder / "launches" / launch.launch, launch.report.tags
        trials = [
            {"name": one.name, "fingerprint": one.fingerprint, **tags.get(one.name, {})} for one in launch.results
        ]
        with _explained(self._folder), self._runs.writing():
            content = {
                "launch": launch.launch,
                "begun": _date(launch.begun),
                "metrics": list(launch.metrics),
                "top_trial": launch.top.name,
                "trials": trials,
                "final": launch.final,
                "synthetic": launch.synthetic,
                "partial": launch.partial,
                "tags": dict(launch.tags),
                "notes": launch.notes,
                "test_set_accesses": launch.test_set_accesses,
                "work": dict(launch.work),
                "spend": dict(launch.spend),
                "files": self._write(files, launch.report.files),
            }
            self._append("launch", content)
        return {f"In {self._folder}": {"Runs": str(self._runs.path), "Report": str(files)}}

    def accept(self, baseline: Baseline) -> None:
        """Store a baseline."""
        name = "baseline.json"
        files = self._folder / "baselines" / f"{file_name(baseline.launch)}"
        text = json.dumps(baseline.to_json(), ensure_ascii=False).encode("utf-8", "replace")
        with _explained(self._folder), self._runs.writing():
            said = {"launch": baseline.launch, "who": baseline.who, "accepted": baseline.when, "why": baseline.why}
            self._append("baseline", {**said, "file": f"{self._write(files, {name: text})}/{name}"})

    def baseline(self) -> Baseline | None:
        """Return the newest accepted baseline; None if there is none. Raises DataError if it cannot be read."""
        lines = list(self._lines("baseline"))
        if not lines:
            return None
        file = self._folder / str(lines[-1].get("file"))
        try:
            return Baseline.from_json(json.loads(file.read_text(encoding="utf-8")), where=str(file))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{file}: cannot be read: {error}; accept a baseline again") from None

    def log_gate(self, gate: FinishedGate) -> Links:
        """Log a scheduled run, with the gate's files in the folder of its launch; return that folder."""
        files = self._folder / "launches" / gate.launch / "gate"
        with _explained(self._folder), self._runs.writing():
            content = {
                "launch": gate.launch,
                "verdict": gate.verdict,
                "tags": dict(gate.tags),
                "trials": dict(gate.runs),
                "files": self._write(files, gate.files),
            }
            self._append("scheduled_run", content)
        return {f"In {self._folder}": {"Runs": str(self._runs.path), "Gate": str(files)}}

    def history(self, trials: Sequence[str], metrics: Sequence[str]) -> dict[str, list[ScheduledRun]]:
        """Return the scheduled runs of each trial, oldest first, with the metrics that have a value."""
        found: dict[str, list[ScheduledRun]] = {trial: [] for trial in trials}
        try:
            for line in self._lines("scheduled_run"):
                for trial, run in line["trials"].items():
                    if trial in found:
                        found[trial].append(_run(run, metrics))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{self._runs.path}: a scheduled run cannot be read ({type(error).__name__}: {error})"
            raise DataError(f"{message}; restore the file, or remove the line") from None
        return {trial: [run for run in runs if run.points] for trial, runs in found.items()}

    def gate_records(self, most: int) -> list[Mapping[str, Any]]:
        """Return the records of the newest scheduled runs, oldest first; one whose file is gone is left out."""
        files = [self._folder / str(line.get("files")) / GATE_RECORD for line in self._lines("scheduled_run")]
        return [record for file in files[-most:] if (record := gate_record(file)) is not None]

    def _lines(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """The lines of one kind, oldest first. Another experiment's name may give the same folder."""
        return (line for line, _ in self._runs.lines() if self._is_own(line, kind))

    def _is_own(self, line: Mapping[str, Any], kind: str) -> bool:
        return line.get("kind") == kind and line.get("experiment") == self._experiment

    def _is_logged(self, fingerprint: str) -> bool:
        """Whether a trial is logged, by this process or another; reads only the lines that are new."""
        for line, end in self._runs.lines(self._read):
            self._read = end
            if self._is_own(line, "trial"):
                self._trials.add(str(line.get("fingerprint")))
        return fingerprint in self._trials

    def _append(self, kind: str, content: Mapping[str, Any]) -> None:
        found, now = environment(), _date(time.time())
        head = {"format": FORMAT, "kind": kind, "experiment": self._experiment, "logged": now}
        self._runs.append({**head, **content, "version": found.version, "user": found.user, "commit": found.commit})

    def _write(self, folder: Path, files: Mapping[str, bytes]) -> str:
        with _complete(folder) as part:
            for name, content in files.items():
                (part / name).write_bytes(content)
        return folder.relative_to(self._folder).as_posix()


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Convert errors of the file system to HarnessError."""
    try:
        yield
    except OSError as error:
        message = f"tracking: {folder}: cannot be written: {error.strerror or error}"
        raise HarnessError(f"{message}; computed results are kept") from error


@contextlib.contextmanager
def _complete(folder: Path) -> Iterator[Path]:
    """Yield a new folder that replaces `folder` when the block ends, without secrets in its files."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
    part.mkdir(parents=True)
    yield part
    redact_all(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.replace(folder)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _run(run: Mapping[str, Any], metrics: Sequence[str]) -> ScheduledRun:
    """The scheduled run of a line."""
    found = {name: point for name, point in run["points"].items() if name in metrics}
    points = {
        name: TrendPoint(**{field: math.nan if point[field] is None else point[field] for field in TrendPoint._fields})
        for name, point in found.items()
    }
    return ScheduledRun(int(run["when"]), points)
