"""The state of a launch while it runs: in the store, for `harness watch`, and in the tracker."""

import contextlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.core.errors import HarnessError
from harness.core.progress import watching
from harness.llm import Caller
from harness.storage.files import keep_file
from harness.tracking import Tracker
from harness.tracking.running_launch import RunningLaunch

FOLDER = "running"
"""The folder of the store with a file for each launch that runs."""

_FILE_SECONDS, _TRACKER_SECONDS = 1.0, 10.0
"""How often the state is written. A launch that ends sooner is never shown as running in the tracker."""


class Live:
    """Shows the state of a launch; a context manager for the time in which it runs."""

    def __init__(
        self, store: Path, state: RunningLaunch, caller: Caller, tracker: Tracker | None, lost: Callable[[], int]
    ) -> None:
        """`lost` returns the number of stages that have failed so far."""
        self._path = store / FOLDER / f"{state.launch}.json"
        self._state, self._caller, self._tracker, self._lost = state, caller, tracker, lost
        self._written = self._logged = time.monotonic()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Live":
        self._stack.enter_context(watching(self._step))
        self._write()
        return self

    def trial_finished(self) -> None:
        """Count a trial whose result is known."""
        self._state = self._state._replace(finished=self._state.finished + 1)
        self._show()

    def _step(self, title: str, done: float, total: float, unit: str, left: float | None) -> None:
        self._state = self._state._replace(title=title, done=done, total=total, unit=unit, left=left)
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._written >= _FILE_SECONDS:
            self._written = now
            self._write()
        if self._tracker and now - self._logged >= _TRACKER_SECONDS:
            self._logged = now
            try:
                self._tracker.log_running(self._now())
            except HarnessError:
                self._tracker = None  # a destination that cannot be used is reported when a trial is logged

    def _now(self) -> RunningLaunch:
        spend = self._caller.spend
        usd = None if spend.unpriced else spend.usd
        return self._state._replace(updated=time.time(), lost=self._lost(), calls=spend.calls, usd=usd)

    def _write(self) -> None:
        # What only informs must not end a launch: if the disk is full, the next artifact says so.
        with contextlib.suppress(OSError):
            keep_file(self._path.parent, self._path.name, json.dumps(self._now()._asdict()).encode())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._stack.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        if kind is not None and self._tracker:
            with contextlib.suppress(HarnessError):  # the failure itself is what counts
                self._tracker.log_failure(self._state.launch, interrupted=not issubclass(kind, Exception))


def started(launch: str, experiment: str, begun: float, trials: int) -> RunningLaunch:
    """Return the state of a launch of this process before any work."""
    where = platform.node(), os.getpid()
    return RunningLaunch(launch, experiment, *where, begun, begun, trials, 0, 0, "", 0.0, 0.0, "", None, 0, 0.0)


def running(store: Path) -> Iterator[RunningLaunch]:
    """Yield the launches that run on a store, the oldest first. The files of those that were killed are removed."""
    for path in sorted((store / FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            state = RunningLaunch(**json.loads(path.read_text(encoding="utf-8")))
            if state.alive:
                yield state
            else:
                path.unlink()
