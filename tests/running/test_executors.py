"""One interface for every place work can run."""

import pytest

from harness.core.errors import ConfigError
from harness.running.executors import Serial, open_executor


def test_serial_runs_when_asked_and_keeps_exceptions() -> None:
    """Once, not before its result is wanted; the future carries what the task raised."""
    with open_executor() as executor:
        ran: list[int] = []
        task = executor.submit(ran.append, 1)
        assert ran == []
        task.result()
        task.result()
        assert ran == [1]
        assert executor.submit(pow, 2, 5).result() == 32
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()


def test_processes_run_elsewhere() -> None:
    """A worker process has another id."""
    import os

    with open_executor(2) as executor:
        assert executor.submit(os.getpid).result() != os.getpid()


def test_an_engine_of_the_users() -> None:
    """`module:callable` is called with the number of workers; anything but an Executor is refused."""
    with open_executor(3, "concurrent.futures:ThreadPoolExecutor") as executor:
        assert not isinstance(executor, Serial)
        assert executor.submit(pow, 2, 3).result() == 8
    with pytest.raises(ConfigError, match="not a concurrent"):
        open_executor(3, "builtins:range")
    with pytest.raises(ConfigError, match="package.module:callable"):
        open_executor(3, "nowhere")
