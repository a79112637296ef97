"""Engines for tasks in this process, in worker processes and on a custom executor."""

import os

import pytest

from harness.core.errors import ConfigError
from harness.running.engines import open_engine
from harness.running.executors import STARTING_SECONDS, Serial


def test_serial_executor_runs_at_once_and_keeps_exceptions() -> None:
    """A task runs when it is submitted; the future raises what the task raised."""
    ran: list[int] = []
    task = Serial().submit(ran.append, 1)
    assert ran == [1]
    task.result()
    task.result()
    assert ran == [1]
    assert Serial().submit(pow, 2, 5).result() == 32
    failed = Serial().submit(divmod, 1, 0)
    with pytest.raises(ZeroDivisionError):
        failed.result()


def test_one_worker_is_this_process() -> None:
    """No process is started for one worker."""
    with open_engine() as engine:
        assert engine.submit(os.getpid).result() == os.getpid()
        assert engine.at_once == 1


def test_workers_start_late() -> None:
    """As long as no worker has started, a task may be run here; afterwards all go to the workers."""
    with open_engine(2) as engine:
        assert engine.submit(os.getpid, here=True).result() == os.getpid()
        assert engine.submit(os.getpid).result() != os.getpid()
        assert engine.submit(os.getpid, here=True).result() != os.getpid()


def test_when_workers_pay() -> None:
    """If what they save is more than what it costs to start them: with two, half the time."""
    with open_engine(2) as engine:
        assert not engine.pays(1.9 * STARTING_SECONDS)
        assert engine.pays(2.1 * STARTING_SECONDS)
        engine.submit(pow, 2, 3).result()
        assert engine.pays(0.0)
    with open_engine(4) as engine:
        assert engine.pays(1.4 * STARTING_SECONDS)


def test_a_custom_executor() -> None:
    """`module:callable` is called with the number of workers and must return an Executor; it gets every task."""
    with open_engine(3, "concurrent.futures:ThreadPoolExecutor") as engine:
        assert engine.submit(pow, 2, 3, here=True).result() == 8
        assert (engine.workers, engine.at_once) == (3, 6)
    with pytest.raises(ConfigError, match="not a concurrent"):
        open_engine(3, "builtins:range")
    with pytest.raises(ConfigError, match="package.module:callable"):
        open_engine(3, "nowhere")
