"""Progress of long work, with the time left: a bar in a terminal or a notebook, else a line a minute on stderr."""

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Advance = Callable[[float], None]
"""Called with the amount done since the last call."""

Clock = Callable[[], float]

LINE_SECONDS = 60.0
"""The time between two lines where there is no terminal."""

_active = threading.local()

Watcher = Callable[[str, float, float, str, float | None], None]
"""Receives the title, what is done, the total, the unit and the seconds left; all empty when the work ends."""


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Have a watcher told of the progress of this thread's work while the block runs."""
    before = getattr(_active, "watcher", None)
    _active.watcher = watcher
    try:
        yield
    finally:
        _active.watcher = before


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(8), duration(100), duration(5000)
    ('8 s', '2 min', '1 h 23 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class TimeLeft:
    """Estimates the time left from the work of the last half of the time, so that a slow start is soon forgotten."""

    def __init__(self, total: float, clock: Clock = time.monotonic) -> None:
        self.total, self.done = total, 0.0
        self._clock, self._begin = clock, clock()
        self._past: deque[tuple[float, float]] = deque([(self._begin, 0.0)])

    def advance(self, amount: float) -> None:
        """Note that so much more is done."""
        self.done += amount
        now = self._clock()
        self._past.append((now, self.done))
        half = self._begin + (now - self._begin) / 2
        while len(self._past) > 2 and self._past[1][0] <= half:
            self._past.popleft()

    def seconds(self) -> float | None:
        """The seconds left; None if they cannot be told yet."""
        (then, before), (last, done) = self._past[0], self._past[-1]
        if done <= before or last <= then:
            return None
        expected = (self.total - done) * (last - then) / (done - before)
        return max(0.0, expected - (self._clock() - last))


class _Display(Protocol):
    """Shows the state of the work."""

    def show(self, done: float, left: float | None) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def progress(
    title: str, total: float, *, unit: str = "", left: Callable[[], float | None] | None = None
) -> Iterator[Advance]:
    """Show progress while the block runs; the yielded function advances it.

    `unit` is what is counted, such as `texts`; of `bytes` and `characters`, the percentage is shown. `left` returns the
    seconds left, if the caller knows them better than the amounts done do. Inside other progress nothing is shown.
    """
    if not total or getattr(_active, "shown", False):
        yield lambda _: None
        return
    estimate = TimeLeft(total)
    seconds = left or estimate.seconds
    display = _display(title, total, unit, lambda: (estimate.done, seconds()))
    watcher: Watcher = getattr(_active, "watcher", None) or (lambda *_: None)
    _active.shown = True

    def advance(amount: float) -> None:
        estimate.advance(amount)
        display.show(estimate.done, seconds())
        watcher(title, estimate.done, total, unit, seconds())

    try:
        watcher(title, 0.0, total, unit, None)
        yield advance
    finally:
        _active.shown = False
        display.close()
        watcher("", 0.0, 0.0, "", None)


def _display(title: str, total: float, unit: str, state: Callable[[], tuple[float, float | None]]) -> _Display:
    if sys.stderr.isatty():
        return _Bar(title, total, unit)
    if _in_notebook():
        return _Cell(title, total, unit)
    return _Lines(title, total, unit, state)


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


def described(total: float, unit: str, done: float, left: float | None) -> str:
    """The state of the work in words: `1,200 of 5,000 texts, about 3 min left`."""
    if unit in ("bytes", "characters"):
        words = f"{done / total:.0%}"
    else:
        words = f"{done:,.0f} of {total:,.0f}{f' {unit}' if unit else ''}"
    return words if left is None else f"{words}, about {duration(left)} left"


class _Bar:
    """A bar in a terminal."""

    def __init__(self, title: str, total: float, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._total, self._unit = total, unit
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn()
        console = Console(file=getattr(sys.stderr, "inner", sys.stderr))
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task(title, total=total, state=described(total, unit, 0, None))
        self._bar.start()

    def show(self, done: float, left: float | None) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=done, state=described(self._total, self._unit, done, left))

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


class _Cell:
    """A bar in the output of a notebook's cell, updated at most twice a second, and removed at the end."""

    def __init__(self, title: str, total: float, unit: str) -> None:
        from IPython.display import display

        self._title, self._total, self._unit = title, total, unit
        self._shown = time.monotonic()
        self._handle = display(self._html(0, None), display_id=True)

    def _html(self, done: float, left: float | None) -> Any:
        import html

        from IPython.display import HTML

        words = f"{html.escape(self._title)}: {html.escape(described(self._total, self._unit, done, left))}"
        return HTML(f'<progress value="{done:g}" max="{self._total:g}"></progress> {words}')

    def show(self, done: float, left: float | None) -> None:
        """Update the bar."""
        if time.monotonic() - self._shown >= 0.5 and self._handle is not None:
            self._shown = time.monotonic()
            self._handle.update(self._html(done, left))

    def close(self) -> None:
        """Remove the bar."""
        from IPython.display import HTML

        if self._handle is not None:
            self._handle.update(HTML(""))


class _Lines:
    """A line a minute on stderr, for a log file. Shorter work is silent."""

    def __init__(self, title: str, total: float, unit: str, state: Callable[[], tuple[float, float | None]]) -> None:
        self._title, self._total, self._unit, self._state = title, total, unit, state
        self._stream, self._ended = sys.stderr, threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._ended.wait(LINE_SECONDS):
            line = f"{self._title}: {described(self._total, self._unit, *self._state())}"
            with contextlib.suppress(OSError, ValueError):  # closed meanwhile
                print(line, file=self._stream, flush=True)

    def show(self, done: float, left: float | None) -> None:
        """Nothing: the line is written by the clock."""

    def close(self) -> None:
        """End the lines."""
        self._ended.set()
        self._thread.join()
