"""Ray as the engine: an existing cluster, or one that is started here and ends with the launch."""

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Any

from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.running.executors import Engine
from harness.running.parcel import fault
from harness.running.stages.workspace import StageContext


class RayEngine(Engine):
    """Runs tasks on the nodes of a Ray cluster, which repeats those of a worker that dies."""

    far = True

    def __init__(self, address: str, workers: int) -> None:
        """`address` is `ray://auto` on a node of a cluster, `ray://HOST:PORT` from elsewhere, or `ray://local`.

        `workers` is the number of processes of a local cluster. Raises ConfigError if the package is missing, or the
        cluster cannot be reached.
        """
        self._address = address
        # A cluster that is started here sends no usage statistics.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            raise ConfigError(f"--on {address}: ray is missing; pip install 'retrieval-harness[ray]'") from error
        place = address.removeprefix("ray://")
        quiet = {"log_to_driver": False, "configure_logging": False}
        try:
            if place == "local":
                ray.init(num_cpus=workers, include_dashboard=False, **quiet)
            else:
                ray.init("auto" if place == "auto" else address, **quiet)
        except (OSError, RuntimeError, ValueError, TimeoutError, ImportError) as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise ConfigError(f"--on {address}: no Ray cluster answers ({message}); see `ray start`") from error
        self._ray = ray
        self.accelerated = bool(ray.cluster_resources().get("GPU"))
        # Ray's tasks take the place of an executor.
        super().__init__(Executor(), int(ray.cluster_resources().get("CPU", 1)))

    def require(self, context: StageContext) -> None:
        """Raise ConfigError, before any work, if a node would compute something else than this process."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in self._ray.nodes() if node["Alive"]}
        asked = self._ray.remote(fault)
        places = (NodeAffinitySchedulingStrategy(name, soft=False) for name in nodes)
        said = self._ray.get([asked.options(scheduling_strategy=place).remote(context) for place in places])
        wrong = [(node, text) for node, text in zip(nodes.values(), said, strict=True) if text]
        if wrong:
            more = f" ({plural(len(wrong) - 1, 'further node')} as well)" if len(wrong) > 1 else ""
            raise ConfigError(f"--on {self._address}: node {wrong[0][0]}: {wrong[0][1]}{more}")

    def failure(self, error: BaseException) -> str:
        """In one line, what is wrong with the cluster itself; empty if it is the task that failed."""
        from ray.exceptions import OutOfMemoryError, RayError, RayTaskError, WorkerCrashedError

        if isinstance(error, WorkerCrashedError | OutOfMemoryError):
            died = "several workers died one after another at the same task (killed, or out of memory)"
            return f"{self._address}: {died}; run again to resume, with more memory for each"
        if isinstance(error, RayError) and not isinstance(error, RayTaskError):
            return f"{self._address}: the cluster is gone ({type(error).__name__}); start it, and run again to resume"
        return ""

    def _submit(
        self, task: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any], *, accelerated: bool
    ) -> Future[Any]:
        remote = self._ray.remote(task).options(num_gpus=1 if accelerated and self.accelerated else 0)
        future: Future[Any] = Future()
        remote.remote(*arguments, **named).future().add_done_callback(lambda done: _copy(done, future))
        return future

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ray.shutdown()


def _copy(done: "Future[Any]", future: Future[Any]) -> None:
    """Copy the outcome of a Ray task; an exception of the task itself is the one that it raised."""
    from ray.exceptions import RayTaskError

    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error.cause if isinstance(error, RayTaskError) else error)
