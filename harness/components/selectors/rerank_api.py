"""Reranking with a server that has a /rerank endpoint."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from harness.components.component import Positive, runtime
from harness.components.roles import Reranker
from harness.core.errors import ConfigError
from harness.core.records import Floats
from harness.core.secrecy import address_fault, holds_credentials
from harness.llm.posting import Post

_KEY = "RERANK_API_KEY"


@dataclass(frozen=True)
class RerankApi(Reranker):
    """Rank by a server's /rerank endpoint, as of Cohere, Jina, Voyage, vLLM, llama.cpp or Infinity, or with
    `protocol: tei` of text-embeddings-inference; keep the best `k`.

    `base_url` is the address before /rerank; the key comes from RERANK_API_KEY. A request has at most `at_once` texts.
    With `usd_per_thousand`, the price of 1000 requests, `plan` shows the cost and `--budget` limits it. `timeout` and
    `give_up_after` are in seconds.
    """

    metered: ClassVar[bool] = True

    model: str = "rerank-v3.5"
    base_url: str = "https://api.cohere.com/v2"
    protocol: Literal["cohere", "tei"] = "cohere"
    usd_per_thousand: Annotated[float, Field(ge=0)] | None = runtime(None)
    retries: Annotated[int, Field(ge=0)] = runtime(5)
    timeout: Annotated[float, Field(gt=0)] = runtime(60.0)
    at_once: Positive = runtime(500)
    give_up_after: Annotated[float, Field(gt=0)] = runtime(300.0)

    def problem(self) -> str | None:
        """An error message if `base_url` is malformed or contains credentials."""
        fault = address_fault(self.base_url)
        if fault:
            return f"base_url: {fault}"
        if holds_credentials(self.base_url):
            return f"base_url: holds a user, a password or a key, which would be logged; set {_KEY} instead"
        return None

    def requests(self, texts: int) -> int:
        """The number of requests for `texts` texts of one query, at most `at_once` texts each."""
        return math.ceil(texts / self.at_once)

    def usd(self, requests: int) -> float | None:
        """The cost of `requests` requests in dollars; None if `usd_per_thousand` is not set."""
        return None if self.usd_per_thousand is None else requests * self.usd_per_thousand / 1000

    def score(self, query: str, texts: Sequence[str]) -> Floats:
        """Return the server's score for each text, (texts,).

        Raises ConfigError if the server refuses, or its answer does not have one finite score per text.
        """
        scores = np.empty(len(texts))
        for start in range(0, len(texts), self.at_once):
            block = list(texts[start : start + self.at_once])
            scores[start : start + len(block)] = self._asked(query, block)
        return scores

    def _asked(self, query: str, texts: list[str]) -> Floats:
        body: dict[str, Any] = {"model": self.model, "query": query, "documents": texts, "top_n": len(texts)}
        if self.protocol == "tei":
            body = {"query": query, "texts": texts, "raw_scores": False}
        post = Post(
            "selector rerank_api",
            self.base_url,
            self.model,
            "/rerank",
            retries=self.retries,
            timeout=self.timeout,
            give_up_after=self.give_up_after,
            variable=_KEY,
        )
        (answer,) = post.answers([body])
        return _read(answer, len(texts), post.where)


def _read(answer: Any, count: int, where: str) -> Floats:
    """One score per text, in the order of the texts, which may differ from the order of the answer."""
    rows = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    scores = np.full(count, np.nan)
    for row in rows if isinstance(rows, list) else []:
        at = row.get("index") if isinstance(row, dict) else None
        value = row.get("relevance_score", row.get("score")) if isinstance(row, dict) else None
        if type(at) is not int or not 0 <= at < count or isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{where}: expected {{index, relevance_score}} below index {count}, got {row!r:.80}")
        scores[at] = value if abs(value) < 1e30 else np.nan
    if not np.isfinite(scores).all():
        message = f"{int(np.isfinite(scores).sum())} of {count} texts have a score"
        raise ConfigError(f"{where}: {message}; expected `results` with a score for each text")
    return scores
