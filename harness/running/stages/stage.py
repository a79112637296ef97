"""A stage: one step of the work on a trial, identified by everything that determines its output.

Stages are small frozen objects. Trials that share settings share stages; a launch makes each distinct stage once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, Self, TypeVar

from harness.running.stages.model_access import ModelAccess
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.store import Artifact, Key, object_name


@dataclass(frozen=True, eq=False)
class Stage(ABC):
    """One step of the work on a trial. Two stages with the same address are the same stage."""

    @cached_property
    @abstractmethod
    def address(self) -> str:
        """What identifies the stage."""

    @property
    def inputs(self) -> "tuple[Stage, ...]":
        """The stages that must be done before this one."""
        return ()

    @property
    def stored_as(self) -> Sequence[tuple[str, str]]:
        """What the stage keeps in the store: pairs of the kind and the name."""
        return ()

    @abstractmethod
    def done(self, work: Workspace) -> bool:
        """Whether nothing is left to do."""


@dataclass(frozen=True, eq=False)
class StoredStage(Stage):
    """A stage whose output is an artifact of the store. It can be built in any process.

    A key depends on settings only, so all keys are known before any work. It contains the settings of its stage and the
    addresses of the stages before it.
    """

    light: ClassVar[bool] = False
    """Whether it usually takes milliseconds, so that starting a process for it may not pay."""

    @property
    def stored_as(self) -> Sequence[tuple[str, str]]:
        """The artifact."""
        return ((self.name, object_name(self.address)),)

    @property
    def reads_answers(self) -> bool:
        """Whether it reads answers of models, which only the launching machine has."""
        return False

    @cached_property
    @abstractmethod
    def key(self) -> Key:
        """What determines the output, as JSON-serializable values."""

    @cached_property
    def address(self) -> str:
        """The digest of the key, which is also the output's address in the store."""
        return digest(self.key)

    @property
    def name(self) -> str:
        """The name of the stage, under which work is counted."""
        return str(self.key["stage"])

    @abstractmethod
    def build(self, work: Workspace) -> Artifact:
        """Compute the output; inputs that are not stored are computed too."""

    def read(self, work: Workspace) -> Artifact:
        """Return the output: from the store, or built and stored."""
        return work.store.get(self.key, lambda: self.build(work))

    def done(self, work: Workspace) -> bool:
        """Whether the output is stored."""
        return work.store.has(self.key)

    def make(self, work: Workspace) -> None:
        """Build and store the output if it is not stored."""
        self.read(work)


Whole = TypeVar("Whole", bound=StoredStage)


@dataclass(frozen=True, eq=False)
class PartStage(StoredStage, Generic[Whole]):
    """Part number `part` of `parts` of a stage on a large corpus; the whole joins what its parts have stored."""

    whole: Whole
    part: int
    parts: int

    @classmethod
    def split(cls, whole: Whole, parts: int) -> tuple[Self, ...]:
        """Return the parts of a stage; none if there is only one, which is the stage itself."""
        return tuple(cls(whole, part, parts) for part in range(parts)) if parts > 1 else ()

    @cached_property
    def key(self) -> Key:
        """The whole, and which part of it."""
        return {**self.whole.key, "stage": f"{self.whole.name}_part", "part": [self.part, self.parts]}


@dataclass(frozen=True, eq=False)
class ModelStage(Stage):
    """A stage that fetches outputs of models into a cache, from which stored stages then read them.

    It runs only in the process that holds the budget, the rate limiter and the answer cache, or that has the models
    loaded. What it lacks is known when its inputs are stored; stages of all trials ask together.
    """

    turn: ClassVar[int] = 0
    """Kinds of stages take turns in this order: each asks once for all trials."""

    @property
    def round(self) -> tuple[int, int]:
        """The turn in which this stage asks, and its place if one kind has several turns."""
        return (self.turn, 0)

    @property
    def charges(self) -> bool:
        """Whether fetching may cost money. After a failure, nothing more is paid for."""
        return True

    def done(self, work: Workspace) -> bool:
        """Always false: what is lacking is known only when its inputs are stored."""
        return False

    @classmethod
    @abstractmethod
    def fetch(cls, stages: "Sequence[tuple[Self, Workspace]]", models: ModelAccess) -> None:
        """Fetch what all these stages lack.

        Raises JudgeError if no further call can succeed or the budget does not cover a charge, KeyboardInterrupt if the
        user stopped the calls.
        """
