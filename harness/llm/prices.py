"""The cost of calls: token usage reported by servers, prices per token, upper bounds, and the budget."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

_ABSURD = 10_000_000
"""Token counts from here on are implausible and are ignored."""


def dollars(usd: float | None) -> str:
    """An amount as messages show it; `price unknown` for None."""
    return "price unknown" if usd is None else f"${usd:.4f}"


class Usage(NamedTuple):
    """Tokens of one request as reported by the server; `cached` (read) and `written` are included in `prompt`."""

    prompt: int
    output: int
    cached: int = 0
    written: int = 0

    @classmethod
    def of(cls, text: Any) -> "Usage | None":
        """The usage in a server's response; None if it is missing or implausible."""
        if not isinstance(text, Mapping):
            return None
        inner = text.get("prompt_tokens_details")
        details: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        counts: list[Any] = [
            text.get("prompt_tokens"),
            text.get("completion_tokens"),
            details.get("cached_tokens") or 0,
            details.get("cache_write_tokens") or 0,
        ]
        if any(type(count) is not int or not 0 <= count < _ABSURD for count in counts):
            return None
        prompt, output, cached, written = counts
        total = text.get("total_tokens")
        if type(total) is int and prompt + output < total < _ABSURD:
            # Some servers count reasoning tokens only in the total; they are charged as output.
            output = total - prompt
        usage = cls(prompt, output, cached, written)
        return usage if usage.cached + usage.written <= usage.prompt else None


@dataclass(frozen=True)
class Price:
    """The price of a model, from the price list or `given`: dollars per million prompt and output tokens.

    `provider_url` is the server address used to look up the price.
    """

    model: str
    given: tuple[float, float] | None = None
    provider_url: str = ""

    def usd(self, usage: Usage) -> float:
        """The cost of a request in dollars. Raises LookupError if the price list does not know the model."""
        if self.given:
            return (usage.prompt * self.given[0] + usage.output * self.given[1]) / 1e6
        return _listed(self.model, self.provider_url, usage)

    def max_usd(self, prompt_bytes: int, output: int) -> float:
        """The maximum cost in dollars: one token per byte of the prompt, all written to the server's cache."""
        plain = self.usd(Usage(prompt_bytes, output))
        return plain if self.given else max(plain, self.usd(Usage(prompt_bytes, output, 0, prompt_bytes)))


def find_price(model: str, url: str, given: tuple[float, float] | None = None) -> Price | None:
    """The price of a model at a server: as `given` by the user, else from the price list; None if unknown.

    A listed model at an address of an unknown provider has an unknown price.
    """
    if given:
        return Price(model, given)
    price = Price(model, None, url)
    try:
        price.usd(Usage(1, 1))
    except LookupError:
        return None
    return price


@lru_cache(maxsize=65536)
def _listed(model: str, url: str, usage: Usage) -> float:
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
    )
    return float(genai_prices.calc_price(counted, model_ref=model, provider_api_url=url).total_price)


class Budget:
    """The budget of a launch, `cap` dollars or None for no limit.

    A request is sent only if its maximum cost still fits. If a server reports no usage, the request counts as its
    maximum cost.
    """

    def __init__(self, cap: float | None = None) -> None:
        self.cap = cap
        self._spent = 0.0
        self._reserved = 0.0
        self._overrun = 1.0
        self._settled = asyncio.Condition()

    def new_loop(self) -> None:
        """Prepare for another event loop; an asyncio.Condition belongs to a single one."""
        self._settled = asyncio.Condition()

    async def reserve(self, max_usd: float) -> bool:
        """Reserve `max_usd` dollars. Waits while requests in flight may turn out cheaper; False if it cannot fit."""
        async with self._settled:
            await self._settled.wait_for(lambda: self._fits(max_usd) or not self._fits(max_usd, alone=True))
            fits = self._fits(max_usd)
            self._reserved += max_usd if fits else 0.0
            return fits

    def _fits(self, more: float, *, alone: bool = False) -> bool:
        if self.cap is None:
            return True
        reserved = 0.0 if alone else self._reserved
        # Rounding errors of a sum must not reject a request that fits exactly.
        return self._spent + self._overrun * (reserved + more) <= self.cap + 1e-12

    def charge(self, usd: float) -> bool:
        """Spend `usd` dollars immediately; returns False and spends nothing if they do not fit."""
        if not self._fits(usd):
            return False
        self._spent += usd
        return True

    async def settle(self, max_usd: float, spent: float | None) -> None:
        """Release a reservation and record the actual cost in dollars; None if it is unknown."""
        async with self._settled:
            self._reserved -= max_usd
            self._spent += max_usd * self._overrun if spent is None else spent
            if max_usd and spent:
                # A server that exceeded the bound once is assumed to exceed it again.
                self._overrun = max(self._overrun, spent / max_usd)
            self._settled.notify_all()


@dataclass
class Spend:
    """Calls, requests, tokens and dollars of a launch, including failed requests."""

    calls: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Number of answered requests of unknown cost, which `usd` does not include."""

    def add(self, usage: Usage | None, usd: float | None) -> None:
        """Add the usage and the cost in dollars of one answered request; either may be None if unknown."""
        if usage:
            self.prompt_tokens += usage.prompt
            self.cached_tokens += usage.cached
            self.written_tokens += usage.written
            self.output_tokens += usage.output
        if usd is None:
            self.unpriced += 1
        else:
            self.usd += usd

    def figures(self) -> dict[str, float]:
        """All fields as floats; empty if no request was sent."""
        return {name: float(value) for name, value in asdict(self).items()} if self.requests else {}

    @property
    def summary(self) -> str:
        """The cost as text; an unknown cost is never shown as $0."""
        if not self.unpriced:
            return f"${self.usd:.4f}"
        known = f"${self.usd:.4f} and " if self.usd else ""
        return f"{known}an unknown amount for {self.unpriced} requests"
