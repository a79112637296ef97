"""Access to models that may charge money: what is lacking is priced, reported, charged to the budget, and requested."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.components.component import Component
from harness.components.roles import BaseReranker, Embedder
from harness.core.plurals import plural
from harness.core.tokenizer import Tokenizer
from harness.llm import AnswerCache, BatchRunner, Caller, Estimate, Prompter, Task, all_missing, estimate
from harness.llm.prices import dollars
from harness.running.stages.embeddings import Progress
from harness.running.stages.workspace import Workspace
from harness.storage.paces import Paces

PriceGiven = tuple[float, float] | None
"""Dollars per million tokens of prompts and of answers, if the user specifies them."""

Questions = tuple[Component, Sequence[Task]]
"""A component with questions for its language model."""


class Elsewhere(Protocol):
    """Workers on other machines, which do the heavy work that one machine does in the launching process."""

    def embed(
        self, embedder: Embedder, texts: Sequence[str], work: Workspace, *, queries: bool, advance: Progress
    ) -> float:
        """Embed distinct texts without a vector; `advance` gets the lengths of those that are done.

        Returns the seconds of all workers together.
        """

    def score(self, step: BaseReranker, by_query: Mapping[str, Sequence[str]], work: Workspace) -> float:
        """Compute the scores of texts by query that have none yet, and keep them in the cache of this machine.

        Returns the seconds of all workers together.
        """

    def make(self, stage: object, work: Workspace) -> None:
        """Make a stored stage, if it is not made."""


@dataclass(frozen=True)
class ModelAccess:
    """The caller that holds the budget, the prices given by the user, and where to report costs before they arise."""

    caller: Caller
    price: PriceGiven
    notify: Callable[[str], None]
    paces: Paces
    """How long work takes here."""
    elsewhere: Elsewhere | None = None
    """Where to embed and to rerank; None for this process."""

    def ask(self, wanted: Sequence[Questions], title: str) -> None:
        """Have questions answered, except those whose answers are stored. Raises KeyboardInterrupt if stopped."""
        for name, cost in expected_costs(wanted, self.caller.answers, self.price).items():
            if cost.calls:
                self.notify(cost.summary(name))
        BatchRunner(self.caller).ask(_asked(wanted), title)
        if self.caller.stopped:
            raise KeyboardInterrupt

    def charge_embedding(self, embedder: Embedder, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        """Report and charge the cost of embedding texts. Raises JudgeError if they must not be sent."""
        if embedder.metered and texts:
            tokens, price = sum(map(tokenizer.count, texts)), embedder.price_with(self.caller.account.price_given)
            usd = None if price is None else tokens * price / 1e6
            name = labelled(embedder)
            self.notify(f"{name}: {plural(len(texts), 'text')} to embed, {plural(tokens, 'token')}, {dollars(usd)}")
            requests = math.ceil(len(texts) / embedder.batch)
            key = f"embedder.{embedder.name()}.usd_per_million_tokens, or with --price"
            self.caller.account.charge(requests, usd, name, key)

    def charge_reranking(self, step: BaseReranker, requests: int) -> None:
        """Report and charge the cost of requests to a reranker, before they are sent."""
        if step.metered and requests:
            usd, name = step.usd(requests), labelled(step)
            self.notify(f"{name}: {requests} requests, {dollars(usd)}")
            self.caller.account.charge(requests, usd, name, f"selector.{step.name()}.usd_per_thousand")


def expected_costs(wanted: Sequence[Questions], answers: AnswerCache, price: PriceGiven) -> dict[str, Estimate]:
    """Return the expected cost by component and model; answers that are stored cost nothing."""
    found: dict[str, Estimate] = {}
    asked = _asked(wanted)
    for (part, _), (prompter, _), left in zip(wanted, asked, all_missing(answers, asked), strict=True):
        name = labelled(part)
        found[name] = found.get(name, Estimate()).plus(estimate(answers, prompter, left, price))
    return found


def _asked(wanted: Sequence[Questions]) -> list[tuple[Prompter, Sequence[Task]]]:
    return [(part.prompter, tasks) for part, tasks in wanted if part.prompter]


def labelled(part: Component) -> str:
    """The component's name and its model."""
    return f"{part.name()} ({part.model})"
