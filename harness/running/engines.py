"""The places where tasks can run, by name: `processes`, `dask://…`, or an executor of the user."""

import importlib
import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor

from harness.core.errors import ConfigError
from harness.running.dask_engine import DaskEngine
from harness.running.executors import Engine, Serial
from harness.running.ray_engine import RayEngine


def open_engine(workers: int = 1, on: str = "processes") -> Engine:
    """Return an engine that runs `workers` tasks at a time.

    `on` is `processes`; `dask://HOST:PORT`, a scheduler, or `dask://local`, one that is started here; `ray://auto`,
    `ray://HOST:PORT` or `ray://local`; or `package.module:callable`, which is called with the number of workers and
    must return a `concurrent.futures.Executor`. Raises ConfigError if it does not, or if the cluster cannot be reached.
    """
    if on.startswith("dask://"):
        return DaskEngine(on, workers)
    if on.startswith("ray://"):
        return RayEngine(on, workers)
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
