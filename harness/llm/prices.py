"""What calls cost: usage as the server counts it, prices per token, and the most that a request can come to."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

_ABSURD = 10_000_000
"""No request has as many tokens: a server that says so cannot count."""


class Usage(NamedTuple):
    """Tokens of one request as the server counts them; `cached` and `written` are parts of `prompt`."""

    prompt: int
    output: int
    cached: int = 0
    written: int = 0

    @classmethod
    def of(cls, text: Any) -> "Usage | None":
        """The usage in a server's answer; None where it is missing or cannot be true."""
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
            # Some servers count what a model thinks in the total alone; it is charged like the rest of the answer.
            output = total - prompt
        usage = cls(prompt, output, cached, written)
        return usage if usage.cached + usage.written <= usage.prompt else None


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens given by hand, or those of a model in the price list."""

    model: str
    given: tuple[float, float] | None = None
    provider_url: str = ""

    def usd(self, usage: Usage) -> float:
        """What a request cost."""
        if self.given:
            return (usage.prompt * self.given[0] + usage.output * self.given[1]) / 1e6
        return _listed(self.model, self.provider_url, usage)

    def max_usd(self, prompt_bytes: int, output: int) -> float:
        """The most a request can cost: a token for every byte of it, each written to the server's cache."""
        plain = self.usd(Usage(prompt_bytes, output))
        return plain if self.given else max(plain, self.usd(Usage(prompt_bytes, output, 0, prompt_bytes)))


def find_price(model: str, url: str, given: tuple[float, float] | None = None) -> Price | None:
    """The price of a model at a server: what the user says, else the list's; None where neither knows it.

    A model of a familiar name at another address is not taken to cost the same.
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
    """Money set aside for a launch. A request is sent only where the most it can cost still fits.

    What a server does not count is taken to have cost the most it could.
    """

    def __init__(self, cap: float | None = None) -> None:
        self.cap = cap
        self._spent = 0.0
        self._reserved = 0.0
        self._strain = 1.0
        self._settled = asyncio.Condition()

    def new_loop(self) -> None:
        """Get ready for another event loop: what waits for money belongs to one."""
        self._settled = asyncio.Condition()

    async def reserve(self, max_usd: float) -> bool:
        """Reserve `max_usd` dollars. Waits while requests in flight may still leave enough; False where they cannot."""
        async with self._settled:
            await self._settled.wait_for(lambda: self._fits(max_usd) or not self._fits(max_usd, alone=True))
            fits = self._fits(max_usd)
            self._reserved += max_usd if fits else 0.0
            return fits

    def _fits(self, more: float, *, alone: bool = False) -> bool:
        if self.cap is None:
            return True
        under_way = 0.0 if alone else self._reserved
        # Sums of floats may miss a cap that fits exactly by their last bit.
        return self._spent + self._strain * (under_way + more) <= self.cap + 1e-12

    def charge(self, usd: float) -> bool:
        """Take what is about to be spent for certain; False, and nothing taken, where it does not fit."""
        if not self._fits(usd):
            return False
        self._spent += usd
        return True

    async def settle(self, max_usd: float, spent: float | None) -> None:
        """Put what was reserved back and take what was spent."""
        async with self._settled:
            self._reserved -= max_usd
            self._spent += max_usd * self._strain if spent is None else spent
            if max_usd and spent:
                # A server that takes more than it was allowed will do so again.
                self._strain = max(self._strain, spent / max_usd)
            self._settled.notify_all()


@dataclass
class Spend:
    """What a launch has used of models, failed requests included."""

    calls: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Answered requests whose cost is not known: `usd` leaves them out."""

    def add(self, usage: Usage | None, usd: float | None) -> None:
        """Count one answered request."""
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
        """All of it as numbers; empty where nothing was asked."""
        return {name: float(value) for name, value in asdict(self).items()} if self.requests else {}

    @property
    def summary(self) -> str:
        """The dollars in words; what is not known is never $0."""
        if not self.unpriced:
            return f"${self.usd:.4f}"
        known = f"${self.usd:.4f} and " if self.usd else ""
        return f"{known}an unknown amount for {self.unpriced} requests"
