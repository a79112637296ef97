"""Engines for tasks: this process, worker processes, or an executor supplied by the user."""

import importlib
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from types import TracebackType
from typing import Any, Self

from harness.core.errors import ConfigError

STARTING_SECONDS = 2.5
"""What must be gained before worker processes are started: each imports everything anew."""


class Serial(Executor):
    """Runs each task in the calling process, at once, so that one worker needs no separate code path."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the task and return its finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Engine:
    """Runs tasks on an executor, `workers` at a time; a context manager that ends the executor.

    `starts_late` says that the executor's workers cost time to start, so that a few quick tasks are better run here.
    """

    def __init__(self, executor: Executor, workers: int, *, starts_late: bool = False) -> None:
        self._executor, self.workers, self._late = executor, workers, starts_late
        self._serial = Serial()

    @property
    def at_once(self) -> int:
        """How many tasks to submit before one is finished; workers do not wait for the next one."""
        return 1 if isinstance(self._executor, Serial) else 2 * self.workers

    def pays(self, seconds: float) -> bool:
        """Whether work of so many seconds is done sooner by workers than here; true once they have started."""
        return not self._late or seconds * (1 - 1 / self.workers) > STARTING_SECONDS

    def submit(self, task: Callable[..., Any], /, *arguments: Any, here: bool = False) -> Future[Any]:
        """Submit a task. `here` runs it in this process if no worker has started yet."""
        if here and self._late:
            return self._serial.submit(task, *arguments)
        self._late = False
        return self._executor.submit(task, *arguments)

    def __enter__(self) -> Self:
        self._executor.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=True, cancel_futures=kind is not None)


def open_engine(workers: int = 1, on: str = "processes") -> Engine:
    """Return an engine that runs `workers` tasks at a time.

    `on` is `processes`, or `package.module:callable`, which is called with the number of workers and must return a
    `concurrent.futures.Executor` (for example a Dask client's `get_executor()`). Raises ConfigError if it does not.
    """
    if on != "processes":
        return Engine(_custom(on, workers), workers)
    if workers == 1:
        return Engine(Serial(), 1)
    # Spawned, not forked: torch's and FAISS' thread pools do not survive a fork.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    return Engine(pool, workers, starts_late=True)


def _custom(reference: str, workers: int) -> Executor:
    module, _, name = reference.partition(":")
    try:
        factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"--on {reference}: {error}; expected 'processes' or a 'package.module:callable' that returns an Executor"
        ) from None
    try:
        executor = factory(workers)
    except TypeError as error:
        raise ConfigError(f"--on {reference}: {error}; it is called with the number of workers") from None
    if not isinstance(executor, Executor):
        raise ConfigError(f"--on {reference}: returned a {type(executor).__name__}, not a concurrent.futures.Executor")
    return executor
