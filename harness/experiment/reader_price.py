"""The price of the reader, the model that gets the selected passages in its prompt; used for the cost of a query."""

from dataclasses import dataclass

from harness.core.errors import ConfigError
from harness.llm.prices import Usage, find_price

_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True)
class Reader:
    """The reader's price: that of a model in the price list, or `price` in dollars per million prompt tokens.

    Raises ConfigError if the price is unknown or negative.
    """

    model: str = ""
    price: float | None = None

    def __post_init__(self) -> None:
        if self.price is None and (not self.model or find_price(self.model, _OPENAI) is None):
            message = f"the price of '{self.model}' is not known" if self.model else "neither a model nor a price"
            raise ConfigError(f"reader: {message}; give `price` in dollars per million tokens")
        if self.price is not None and not self.price >= 0:
            raise ConfigError(f"reader: price: expected at least 0, got {self.price}")

    def usd(self, tokens: float) -> float:
        """The cost of this many prompt tokens, in dollars."""
        if self.price is not None:
            return tokens * self.price / 1e6
        known = find_price(self.model, _OPENAI)
        assert known is not None
        return known.usd(Usage(1_000_000, 0)) * tokens / 1e6
