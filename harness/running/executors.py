"""Executors for the tasks of a launch: this process, worker processes, or an executor supplied by the user."""

import importlib
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

from harness.core.errors import ConfigError


class Serial(Executor):
    """Runs each task in the calling process, so that one worker needs no separate code path.

    A task runs when its result is first requested, so results arrive and can be logged one by one, as from workers.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future that runs the task when its result is first requested."""
        return _Deferred(lambda: fn(*args, **kwargs))


class _Deferred(Future[Any]):
    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._work = work

    def result(self, timeout: float | None = None) -> Any:
        if not self.done():
            try:
                self.set_result(self._work())
            except Exception as error:
                self.set_exception(error)
        return super().result(timeout)


def open_executor(workers: int = 1, on: str = "processes") -> Executor:
    """Return an executor that runs `workers` tasks at a time.

    `on` is `processes`, or `package.module:callable`, which is called with the number of workers and must return a
    `concurrent.futures.Executor` (for example a Dask client's `get_executor()`). Raises ConfigError if it does not.
    """
    if on != "processes":
        return _custom(on, workers)
    if workers == 1:
        return Serial()
    # Spawned, not forked: torch's and FAISS' thread pools do not survive a fork.
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


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
