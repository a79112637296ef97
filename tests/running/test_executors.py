"""Executors for tasks in this process, in worker processes and on a custom engine."""

import pytest

from harness.core.errors import ConfigError
from harness.running.executors import Serial, open_executor


def test_serial_executor_is_lazy_and_keeps_exceptions() -> None:
    """A task runs once, when its result is requested; the future raises what the task raised."""
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


def test_tasks_run_in_worker_processes() -> None:
    """A worker process has a different process id."""
    import os

    with open_executor(2) as executor:
        assert executor.submit(os.getpid).result() != os.getpid()


def test_a_custom_executor() -> None:
    """`module:callable` is called with the number of workers and must return an Executor."""
    with open_executor(3, "concurrent.futures:ThreadPoolExecutor") as executor:
        assert not isinstance(executor, Serial)
        assert executor.submit(pow, 2, 3).result() == 8
    with pytest.raises(ConfigError, match="not a concurrent"):
        open_executor(3, "builtins:range")
    with pytest.raises(ConfigError, match="package.module:callable"):
        open_executor(3, "nowhere")
