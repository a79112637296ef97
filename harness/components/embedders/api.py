"""Embeddings from a server with OpenAI's embeddings API."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from harness.components.component import Positive, runtime
from harness.components.embedders.model_prompts import missing_prompts
from harness.components.roles import Embedder
from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.core.records import Embedded
from harness.core.secrecy import address_fault, bare_address, holds_credentials
from harness.llm.posting import Post
from harness.llm.prices import Usage, find_price

_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True)
class Api(Embedder):
    """An OpenAI-compatible embeddings server: `base_url`, else OPENAI_BASE_URL, else OpenAI; key in OPENAI_API_KEY.

    The server decides how to treat texts longer than the model's window. The price is `usd_per_million_tokens`, else
    that of the price list. `timeout` (per request) and `give_up_after` are in seconds.
    """

    metered: ClassVar[bool] = True

    model: str = "text-embedding-3-small"
    dimensions: Positive | None = None
    base_url: str | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    usd_per_million_tokens: Annotated[float, Field(ge=0)] | None = runtime(None)
    batch: Positive = runtime(128)
    retries: Annotated[int, Field(ge=0)] = runtime(5)
    timeout: Annotated[float, Field(gt=0)] = runtime(120.0)
    give_up_after: Annotated[float, Field(gt=0)] = runtime(300.0)

    @property
    def _server(self) -> str:
        return (self.base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI).rstrip("/")

    @property
    def endpoint(self) -> str:
        """The server's address, without credentials."""
        return bare_address(self._server)

    @property
    def stated_price(self) -> float | None:
        """The setting `usd_per_million_tokens`."""
        return self.usd_per_million_tokens

    @property
    def price(self) -> float | None:
        """Dollars per million tokens, from the settings or the price list; None if the model is not listed."""
        if self.usd_per_million_tokens is not None:
            return self.usd_per_million_tokens
        listed = find_price(self.model, self.endpoint)
        return None if listed is None else listed.usd(Usage(1_000_000, 0))

    def problem(self) -> str | None:
        """An error message if the server's address is malformed or `base_url` contains credentials."""
        fault = address_fault(self._server)
        if fault:
            return f"{'base_url' if self.base_url else 'OPENAI_BASE_URL'}: {fault}"
        if self.base_url and holds_credentials(self.base_url):
            return "base_url: holds a user, a password or a key, which would be logged; set OPENAI_API_KEY instead"
        return None

    def advice(self) -> str | None:
        """A warning if the model was trained with prompts and none is set."""
        return missing_prompts(self.model, self.query_prompt, self.document_prompt)

    def facts(self) -> dict[str, str]:
        """The server from OPENAI_BASE_URL, if `base_url` is not set: it is part of the identity."""
        named = self.base_url is None and os.environ.get("OPENAI_BASE_URL", "").strip()
        return {"server": self.endpoint} if named else {}

    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """Send the texts in batches and return one vector per text, (texts, dimensions).

        Raises ConfigError if the server refuses, or its answer does not have one vector of equal length per text.
        """
        prompt = self.query_prompt if queries else self.document_prompt
        body: dict[str, Any] = {"model": self.model, "encoding_format": "float"}
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        # Servers reject an empty text, so a space is sent instead.
        sent = [(prompt + text) or " " for text in texts]
        blocks = [sent[start : start + self.batch] for start in range(0, len(sent), self.batch)]
        post = Post(
            "embedder api",
            self._server,
            self.model,
            "/embeddings",
            retries=self.retries,
            timeout=self.timeout,
            give_up_after=self.give_up_after,
        )
        where, answers = post.where, post.answers([{**body, "input": block} for block in blocks])
        rows = [row for block, answer in zip(blocks, answers, strict=True) for row in _rows(answer, len(block), where)]
        if len({len(row) for row in rows}) > 1:
            raise ConfigError(f"{where} returned vectors of {min(map(len, rows))} to {max(map(len, rows))} numbers")
        vectors = np.array(rows, np.float32).reshape(len(texts), -1) if texts else np.empty((0, 0), np.float32)
        return Embedded(vectors, np.zeros(len(texts), np.bool_))


def _rows(answer: Any, count: int, where: str) -> list[list[float]]:
    """One vector per text, in the order of the texts, which may differ from the order of the answer."""
    data = answer.get("data") if isinstance(answer, dict) else None
    items = data if isinstance(data, list) else []
    if len(items) != count:
        raise ConfigError(f"{where} returned {plural(len(items), 'vector')} for {plural(count, 'text')}")
    found: dict[int, list[float]] = {}
    for item in items:
        at, vector = (item.get("index"), item.get("embedding")) if isinstance(item, dict) else (None, None)
        if type(at) is not int or not isinstance(vector, list) or not vector or not all(map(_is_number, vector)):
            raise ConfigError(f"{where}: expected {{index, embedding}} with a list of numbers, got {str(item)[:80]!r}")
        found[at] = vector
    if found.keys() != set(range(count)):
        raise ConfigError(f"{where}: the indexes of {count} vectors are not 0 to {count - 1}")
    return [found[at] for at in range(count)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30
