"""The graph of what a launch has to do: the distinct stages of all trials that are not done, and what each needs."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple, TypeVar

from harness.running.stages.stage import ModelStage, Stage, StoredStage
from harness.running.stages.workspace import Workspace

Kind = TypeVar("Kind", bound=Stage)


class Node(NamedTuple):
    """A stage that is not done, the workspace of its data, and the addresses of its inputs that are not done either."""

    stage: Stage
    work: Workspace
    inputs: tuple[str, ...]


class Graph:
    """The stages that must be made for the wanted ones, by address, each after its inputs.

    A stage that is done is left out, and so is everything that only it needs.
    """

    def __init__(self, wanted: Iterable[tuple[Stage, Workspace]]) -> None:
        self.nodes: dict[str, Node] = {}
        self._done: set[str] = set()
        for stage, work in wanted:
            self._add(stage, work)
        self._users: dict[str, list[str]] = {}
        for user, node in self.nodes.items():
            for address in node.inputs:
                self._users.setdefault(address, []).append(user)

    def _add(self, stage: Stage, work: Workspace) -> bool:
        """Add a stage with all that it needs; return whether it is to be done."""
        if stage.address in self.nodes:
            return True
        if stage.address in self._done or stage.done(work):
            self._done.add(stage.address)
            return False
        needed = tuple(part.address for part in stage.inputs if self._add(part, work))
        self.nodes[stage.address] = Node(stage, work, tuple(dict.fromkeys(needed)))
        return True

    def rounds(self) -> list[list[tuple[ModelStage, Workspace]]]:
        """Return the stages that fetch outputs of models: each kind once for all trials, by turns."""
        found = self.of_kind(ModelStage)  # type: ignore[type-abstract]
        found.sort(key=lambda one: (one[0].round, type(one[0]).__name__))
        return [list(group) for _, group in groupby(found, key=lambda one: (one[0].round, type(one[0])))]

    def of_kind(self, kind: type[Kind]) -> list[tuple[Kind, Workspace]]:
        """Return the stages of one kind, with their workspaces."""
        nodes = ((node.stage, node.work) for node in self.nodes.values())
        return [(stage, work) for stage, work in nodes if isinstance(stage, kind)]

    def has(self, stage: Stage) -> bool:
        """Whether a stage is to be done."""
        return stage.address in self.nodes

    def waits_for_models(self, stage: Stage) -> bool:
        """Whether outputs of models must be fetched before a stage can run."""
        if not self.has(stage):
            return False
        inputs = (self.nodes[address].stage for address in self.nodes[stage.address].inputs)
        return any(isinstance(part, ModelStage) or self.waits_for_models(part) for part in inputs)

    def before(self, stages: Iterable[Stage]) -> list[str]:
        """Return the addresses of the stored stages that these ones wait for, each after its inputs."""
        found: set[str] = set()
        left = [address for stage in stages for address in self.nodes[stage.address].inputs]
        while left:
            address = left.pop()
            if address not in found:
                found.add(address)
                left += self.nodes[address].inputs
        return [address for address in self.nodes if address in found and self._is_stored(address)]

    def stored(self) -> list[str]:
        """Return the addresses of all stored stages, each after its inputs."""
        return [address for address in self.nodes if self._is_stored(address)]

    def _is_stored(self, address: str) -> bool:
        return isinstance(self.nodes[address].stage, StoredStage)

    def is_shared(self, address: str) -> bool:
        """Whether more than one stage needs this one."""
        return len(self._users.get(address, ())) > 1

    def reach(self, address: str) -> set[str]:
        """Return the addresses of a stage and of all stages that need it, directly or not."""
        found: set[str] = set()
        left = [address]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += self._users.get(one, ())
        return found
