"""What runs tasks: this process, or an executor."""

import inspect
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from types import TracebackType
from typing import Any, Self

from harness.running.stages.workspace import StageContext

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

    far: bool = False
    """Whether workers may be on other machines: they get data through the store, and embed in place of this process."""
    accelerated: bool = False
    """Whether some workers have an accelerator."""
    parcel: str = ""
    """The address of what far workers need of this machine; see `harness.running.parcel`."""
    link: str = ""
    """Where the engine shows its work; empty if it does not."""

    def __init__(self, executor: Executor, workers: int, *, starts_late: bool = False) -> None:
        self._executor, self.workers, self._late = executor, workers, starts_late
        self._serial = Serial()

    def sent(self, context: StageContext) -> StageContext:
        """The context as workers get it."""
        return context._replace(parcel=self.parcel) if self.parcel else context

    def require(self, context: StageContext) -> None:
        """Raise ConfigError, before any work, if a worker would compute something else than this process."""

    def failure(self, error: BaseException) -> str:
        """In one line, what is wrong with the engine itself; empty if it is the task that failed."""
        if isinstance(error, BrokenExecutor):
            return "a worker process died (killed, or out of memory); run again to resume, with fewer --workers"
        return ""

    @property
    def at_once(self) -> int:
        """How many tasks to submit before one is finished; workers do not wait for the next one."""
        return 1 if isinstance(self._executor, Serial) else 2 * self.workers

    def pays(self, seconds: float) -> bool:
        """Whether work of so many seconds is done sooner by workers than here; true once they have started."""
        return not self._late or seconds * (1 - 1 / self.workers) > STARTING_SECONDS

    def submit(
        self, task: Callable[..., Any], /, *arguments: Any, here: bool = False, accelerated: bool = False, **named: Any
    ) -> Future[Any]:
        """Submit a task. `here` runs it in this process if no worker has started yet.

        `accelerated` tasks go to workers that have an accelerator, if the engine knows of any.
        """
        if here and (self._late or self.far):
            return self._serial.submit(task, *arguments, **named)
        self._late = False
        return self._submit(task, arguments, named, accelerated=accelerated)

    def wait(self, futures: Collection[Future[Any]]) -> set[Future[Any]]:
        """Wait until one of some tasks is finished, and return those that are."""
        return wait(futures, return_when=FIRST_COMPLETED).done

    def _submit(
        self, task: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any], *, accelerated: bool
    ) -> Future[Any]:
        return self._executor.submit(task, *arguments, **named)

    def __enter__(self) -> Self:
        self._executor.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop = self._executor.shutdown
        # Dask's own executor cannot cancel what waits, except by not waiting for it.
        if "cancel_futures" in inspect.signature(stop).parameters:
            stop(wait=True, cancel_futures=kind is not None)
        else:
            stop(wait=kind is None)
