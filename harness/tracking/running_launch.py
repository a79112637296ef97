"""The state of a launch while it runs, as trackers and `harness watch` show it."""

import os
import platform
from typing import NamedTuple

from harness.core.plurals import plural
from harness.core.progress import described, duration
from harness.llm.prices import dollars


class RunningLaunch(NamedTuple):
    """The state of a launch while it runs.

    `begun` and `updated` are in seconds since the epoch. `title` is the current work, of which `done` of `total` units
    are done; `left` is its expected time in seconds, if known. `lost` stages have failed. `calls` and `usd` are those
    of language models; `usd` is None if a price is not known.
    """

    launch: str
    experiment: str
    host: str
    process: int
    begun: float
    updated: float
    trials: int
    finished: int
    lost: int
    title: str
    done: float
    total: float
    unit: str
    left: float | None
    calls: int
    usd: float | None

    @property
    def metrics(self) -> dict[str, float]:
        """The state as numbers by name."""
        share = {"share_of_current_work": self.done / self.total} if self.total else {}
        left = {} if self.left is None else {"seconds_left_of_current_work": self.left}
        usd = {} if self.usd is None else {"usd": self.usd}
        counts = {"trials_finished": self.finished, "failed_stages": self.lost, "calls": self.calls}
        return {**counts, "seconds": self.updated - self.begun, **share, **left, **usd}

    @property
    def words(self) -> str:
        """The state in a few short lines."""
        lines = [f"{self.finished} of {plural(self.trials, 'trial')} finished, {duration(self.updated - self.begun)}"]
        if self.title:
            lines.append(f"{self.title}: {described(self.total, self.unit, self.done, self.left)}")
        if self.calls:
            lines.append(f"{plural(self.calls, 'call')} of models, {dollars(self.usd)}")
        if self.lost:
            lines.append(f"{plural(self.lost, 'stage')} failed")
        return "\n".join(lines)

    @property
    def alive(self) -> bool:
        """Whether the process still runs; assumed of one on another machine."""
        return self.host != platform.node() or is_alive(self.process)


def is_alive(process: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True
