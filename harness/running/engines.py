"""The places where tasks can run, by name: `processes`, `dask://…`, or an executor of the user."""

import importlib
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor

from harness.core.errors import ConfigError
from harness.running.dask_engine import DaskEngine
from harness.running.executors import Engine, Serial
from harness.running.ray_engine import RayEngine

PROCESSES = "processes"


def is_cluster(on: str | None) -> bool:
    """Whether a place, by default what HARNESS_ON says, is an engine of other machines that `open_engine` knows."""
    return _place(on).startswith(("dask://", "ray://"))


def require_place(on: str | None) -> None:
    """Raise ConfigError if a place, by default what HARNESS_ON says, cannot be meant; nothing is opened or called."""
    place = _place(on)
    if place != PROCESSES and not is_cluster(on):
        _factory(place)


def _place(on: str | None) -> str:
    return on or os.environ.get("HARNESS_ON") or PROCESSES


def open_engine(workers: int = 1, on: str | None = None) -> Engine:
    """Return an engine that runs `workers` tasks at a time.

    `on` is `processes`; `dask://HOST:PORT`, a scheduler, or `dask://local`, one that is started here; `ray://auto`,
    `ray://HOST:PORT` or `ray://local`; or `package.module:callable`, which is called with the number of workers and
    must return a `concurrent.futures.Executor`. The default is HARNESS_ON, else `processes`. Raises ConfigError if a
    callable does not return an executor, or if a cluster cannot be reached.
    """
    on = _place(on)
    if on.startswith("dask://"):
        return DaskEngine(on, workers)
    if on.startswith("ray://"):
        return RayEngine(on, workers)
    if on != PROCESSES:
        return Engine(_custom(on, workers), workers)
    if workers == 1:
        return Engine(Serial(), 1)
    # Spawned, not forked: torch's and FAISS' thread pools do not survive a fork.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    return Engine(pool, workers, starts_late=True)


def _factory(reference: str) -> Callable[[int], object]:
    module, _, name = reference.partition(":")
    try:
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"--on {reference}: {error}; expected 'processes' or a 'package.module:callable' that returns an Executor"
        ) from None


def _custom(reference: str, workers: int) -> Executor:
    factory = _factory(reference)
    try:
        executor = factory(workers)
    except TypeError as error:
        raise ConfigError(f"--on {reference}: {error}; it is called with the number of workers") from None
    if not isinstance(executor, Executor):
        raise ConfigError(f"--on {reference}: returned a {type(executor).__name__}, not a concurrent.futures.Executor")
    return executor
