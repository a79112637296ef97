"""The embedder role: turn texts into vectors."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from harness.components.component import Component, declared
from harness.core.records import Embedded


class Embedder(Component):
    """Turns texts into vectors."""

    role: ClassVar[str] = "embedder"
    metered: ClassVar[bool] = False
    """Whether embedding costs money; if so, the harness embeds nothing only to measure latency."""

    batch: int = declared(1)
    """The number of texts in a request to a server."""

    def advice(self) -> str | None:
        """A warning for users of these settings; None if there is nothing to warn about."""
        return None

    @property
    def label(self) -> str:
        """The component name and the model name."""
        return f"{self.name()} {self.model}".strip()

    @property
    def price(self) -> float | None:
        """The price in dollars per million tokens; None if it is unknown."""
        return None if self.metered else 0.0

    @property
    def stated_price(self) -> float | None:
        """The price set in the settings, in dollars per million tokens; None if it is not set."""
        return None

    def price_with(self, given: tuple[float, float] | None) -> float | None:
        """Dollars per million tokens: from the settings, else `given` on the command line (IN,OUT), else listed."""
        if not self.metered or given is None or self.stated_price is not None:
            return self.price
        return given[0]

    @abstractmethod
    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """Return one vector per text, (texts, dimensions) float32; vectors must not depend on the batch."""
