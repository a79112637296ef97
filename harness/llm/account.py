"""The account of a launch: what it may spend on models, at what prices, and what it has spent."""

from harness.core.errors import JudgeError
from harness.llm.prices import Budget, Price, Spend, find_price
from harness.llm.prompter import Prompter


class Account:
    """What may be spent and what has been.

    `budget` is in dollars, None for no limit; `price` overrides list prices, in dollars per million prompt and answer
    tokens. With `offline`, nothing may be sent.
    """

    def __init__(self, budget: float | None, price: tuple[float, float] | None, *, offline: bool) -> None:
        self.budget, self.price_given, self.offline = Budget(budget), price, offline
        self.spend = Spend()

    @property
    def cap(self) -> float | None:
        """The budget in dollars; None if there is no limit."""
        return self.budget.cap

    def price(self, prompter: Prompter) -> Price | None:
        """The price of the prompter's model; None if unknown."""
        return find_price(prompter.model, prompter.endpoint, self.price_given)

    def require_price(self, prompter: Prompter) -> None:
        """Raise JudgeError if a budget is set and the price of the model is unknown."""
        if self.cap is not None and not self.offline and self.price(prompter) is None:
            raise JudgeError(
                f"--budget: the price of {prompter.model} at {prompter.endpoint} is not known; "
                "give it with --price IN,OUT (dollars per million tokens; 0,0 if it is free)"
            )

    def charge(self, requests: int, usd: float | None, what: str, setting: str) -> None:
        """Charge requests that are about to be sent by other means, such as reranking; `usd` is None if unknown.

        `setting` names the setting for the price. Raises JudgeError if the requests may not be sent: offline, at an
        unknown price under a budget, or beyond the budget.
        """
        if self.offline and requests:
            raise JudgeError(f"{what}: {requests} requests are not in the cache, and --offline sends nothing")
        if requests and self.cap is not None and usd is None:
            raise JudgeError(f"--budget: the price of {what} is not known; specify it as {setting}")
        if usd is not None and not self.budget.charge(usd):
            raise JudgeError(f"--budget {self.cap:g}: not enough is left for {what}, which costs ${usd:.4f}")
        self.spend.requests += requests
        self.spend.calls += requests
        if usd is None:
            self.spend.unpriced += requests
        else:
            self.spend.usd += usd
