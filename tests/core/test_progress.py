"""Progress: times left that are true, and what is shown in a terminal, a notebook and a log file."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core import progress as module
from harness.core.progress import TimeLeft, described, duration, progress


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_left_at_a_steady_pace() -> None:
    """10 units of 2 s each: after 3 of them, 14 s are left; after another second, 13 s."""
    clock = Clock()
    left = TimeLeft(10, clock)
    assert left.seconds() is None
    for _ in range(3):
        clock.now += 2
        left.advance(1)
    assert left.seconds() == pytest.approx(14)
    clock.now += 1
    assert left.seconds() == pytest.approx(13)


def test_a_slow_start_is_forgotten() -> None:
    """A model that takes 20 s to load, then 1 s per unit: at half of 100 units, the estimate is within a tenth."""
    clock = Clock()
    left = TimeLeft(100, clock)
    clock.now += 20
    for _ in range(50):
        clock.now += 1
        left.advance(1)
    assert left.seconds() == pytest.approx(50, rel=0.1)


def test_words() -> None:
    """Counts, percentages and times."""
    assert described(5000, "texts", 1200, 170) == "1,200 of 5,000 texts, about 3 min left"
    assert described(2e6, "bytes", 5e5, None) == "25%"
    assert [duration(seconds) for seconds in (0.4, 89, 90, 3599, 7300)] == [
        "0 s",
        "89 s",
        "2 min",
        "1 h 0 min",
        "2 h 2 min",
    ]


def test_a_log_file_gets_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a line every 10 ms; shorter work is silent."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("quick", 10) as advance:
        advance(10)
    assert not stream.getvalue()
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)
    with progress("embed", 1000, unit="texts", left=lambda: 120.0) as advance:
        advance(400)
        while "\n" not in stream.getvalue():
            pass
    assert stream.getvalue().startswith("embed: 400 of 1,000 texts, about 2 min left\n")


def test_progress_inside_progress_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bars in one line of a terminal would overwrite each other."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)
    with progress("outer", 2) as advance, progress("inner", 2) as inner:
        inner(1)
        advance(1)
        while "\n" not in stream.getvalue():
            pass
    assert "inner" not in stream.getvalue()


def test_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    """In a real pseudo-terminal: title, bar, state and time left."""
    program = (
        "from harness.core.progress import progress\n"
        "with progress('embed', 1000, unit='texts', left=lambda: 120.0) as advance:\n"
        "    advance(400)\n"
    )
    script = tmp_path / "x.py"
    script.write_text(program)
    terminal = f"import pty; pty.spawn([{sys.executable!r}, '-P', {str(script)!r}])"
    done = subprocess.run([sys.executable, "-c", terminal], capture_output=True, check=True)
    shown = done.stdout.decode()
    assert "embed" in shown
    assert "400 of 1,000 texts, about 2 min left" in shown
