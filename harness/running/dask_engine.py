"""Dask as the engine: an existing scheduler, or a local one that ends with the launch."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from types import TracebackType
from typing import Any

from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.running.executors import Engine
from harness.running.parcel import fault
from harness.running.stages.workspace import StageContext

_CONNECT, _JOIN = 10, 60
"""Seconds to reach the scheduler, and for the first worker to join it."""
_LOOK = 1.0
"""Seconds between two looks at the connection while nothing is finished."""
_RECOUNT = 5.0
"""Seconds between two looks at which workers there are."""
ACCELERATOR = "GPU"
"""The resource by which workers say that they have an accelerator: `dask worker --resources GPU=1`."""
_LOCAL = {"distributed.worker.profile.enabled": False}
"""Settings of a local cluster. Without a dashboard nobody sees the profile, which takes 5 % of a worker's CPU time."""


class DaskEngine(Engine):
    """Runs tasks on the workers of a Dask scheduler, which repeats those of a worker that dies."""

    far = True

    def __init__(self, address: str, workers: int) -> None:
        """`address` is `dask://HOST:PORT` or `dask://local`; `workers` is the number of processes of a local one.

        Raises ConfigError if the package is missing, or the scheduler cannot be reached or has no worker.
        """
        self._address, self._cluster = address, None
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError as error:
            message = f"--on {address}: distributed is missing; pip install 'retrieval-harness[cluster]'"
            raise ConfigError(message) from error
        # Its words about a lost scheduler span pages; `failure` says it in a line.
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        place = address.removeprefix("dask://")
        host, _, port = place.rpartition(":")
        if place != "local" and not (host and port.isdecimal()):
            raise ConfigError(f"--on {address}: expected dask://HOST:PORT, or dask://local")
        try:
            if place == "local":
                with dask.config.set(_LOCAL):
                    self._cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            self._client = Client(self._cluster or f"tcp://{place}", timeout=_CONNECT, set_as_default=False)
            self._client.wait_for_workers(1, timeout=_JOIN)
        except (OSError, TimeoutError, ValueError) as error:
            message = f"--on {address}: no scheduler with a worker answers ({type(error).__name__}: {error})"
            raise ConfigError(f"{' '.join(message.split())[:300]}; see `dask scheduler` and `dask worker`") from error
        self.link = "" if place == "local" else self._client.dashboard_link
        # The client takes the place of an executor.
        super().__init__(Executor(), 1)
        self._count()

    def _count(self) -> None:
        """Look at which workers there are: some join later, and some leave."""
        info = self._client.scheduler_info(n_workers=-1)["workers"].values()
        self.accelerated = any(worker.get("resources", {}).get(ACCELERATOR) for worker in info)
        self.workers = max(1, sum(worker["nthreads"] for worker in info))
        self._counted = time.monotonic()

    def require(self, context: StageContext) -> None:
        """Raise ConfigError, before any work, if a worker would compute something else than this process."""
        found = self._client.run(fault, context, on_error="return")
        wrong = {worker: str(said) for worker, said in found.items() if said}
        if wrong:
            worker, said = next(iter(wrong.items()))
            more = f" ({plural(len(wrong) - 1, 'further worker')} as well)" if len(wrong) > 1 else ""
            raise ConfigError(f"--on {self._address}: worker {worker}: {said}{more}")

    def failure(self, error: BaseException) -> str:
        """In one line, what is wrong with the cluster itself; empty if it is the task that failed."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        if isinstance(error, KilledWorker):
            died = f"{error.allowed_failures + 1} workers died one after another at the same task"
            return f"{self._address}: {died} (killed, or out of memory); run again to resume, with more memory for each"
        if isinstance(error, CommClosedError | CancelledError | asyncio.CancelledError):
            return f"{self._address}: the scheduler is gone; start it, and run again to resume"
        return ""

    def wait(self, futures: Collection[Future[Any]]) -> set[Future[Any]]:
        """Wait until one of some tasks is finished. Raises CancelledError if the scheduler is gone for good."""
        while True:
            done = wait(futures, timeout=_LOOK, return_when=FIRST_COMPLETED).done
            # A client that could not connect again closes, and may leave its futures as they are.
            if self._client.status == "closed" and not done:
                raise CancelledError
            if time.monotonic() - self._counted > _RECOUNT and self._client.status == "running":
                self._count()
            if done:
                return done

    def _submit(
        self, task: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any], *, accelerated: bool
    ) -> Future[Any]:
        resources = {ACCELERATOR: 1} if accelerated and self.accelerated else None
        made = self._client.submit(task, *arguments, **named, pure=False, resources=resources)
        future: Future[Any] = Future()
        made.add_done_callback(lambda done: _copy(done, future))
        return future

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _copy(done: Any, future: Future[Any]) -> None:
    """Copy the outcome of a Dask future."""
    try:
        future.set_result(done.result())
    except BaseException as error:
        future.set_exception(error)
