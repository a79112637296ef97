"""Reranking with any server that has a /rerank endpoint."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from harness.component import Positive, Reranker, runtime
from harness.errors import ConfigError
from harness.model import Floats

_KEY = "RERANK_API_KEY"


@dataclass(frozen=True)
class RerankApi(Reranker):
    """Rank by a server's /rerank endpoint, in the way of Cohere, Jina, Voyage, vLLM, llama.cpp or Infinity, or with
    `protocol: tei` of text-embeddings-inference; keep the best `k`.

    `base_url` is what stands before /rerank; the key comes from RERANK_API_KEY. `usd_per_thousand` requests, of
    `at_once` texts at most, lets `plan` tell the cost and `--budget` cap it.
    """

    metered: ClassVar[bool] = True

    model: str = "rerank-v3.5"
    base_url: str = "https://api.cohere.com/v2"
    protocol: Literal["cohere", "tei"] = "cohere"
    usd_per_thousand: Annotated[float, Field(ge=0)] | None = runtime(None)
    retries: Annotated[int, Field(ge=0)] = runtime(5)
    timeout: Annotated[float, Field(gt=0)] = runtime(60.0)
    at_once: Positive = runtime(500)

    def problem(self) -> str | None:
        usable = self.base_url.startswith(("http://", "https://"))
        return None if usable else "base_url: is no address; write it like http://localhost:8080/v1"

    def requests(self, texts: int) -> int:
        return math.ceil(texts / self.at_once)

    def usd(self, requests: int) -> float | None:
        return None if self.usd_per_thousand is None else requests * self.usd_per_thousand / 1000

    def score(self, query: str, texts: Sequence[str]) -> Floats:
        scores = np.empty(len(texts))
        for start in range(0, len(texts), self.at_once):
            block = list(texts[start : start + self.at_once])
            scores[start : start + len(block)] = self._asked(query, block)
        return scores

    def _asked(self, query: str, texts: list[str]) -> Floats:
        import openai

        body: dict[str, Any] = {"model": self.model, "query": query, "documents": texts, "top_n": len(texts)}
        if self.protocol == "tei":
            body = {"query": query, "texts": texts, "raw_scores": False}
        client = _client(self.base_url, self.retries, self.timeout)
        where = f"selector rerank_api: {self.model} at {self.base_url}"
        try:
            answer = client.post("/rerank", body=body, cast_to=object)
        except openai.OpenAIError as error:
            raise ConfigError(f"{where}: {' '.join(f'{type(error).__name__}: {error}'.split())[:300]}") from error
        return _read(answer, len(texts), where)


def _read(answer: Any, count: int, where: str) -> Floats:
    """One score per text, whatever order the server told them in."""
    rows = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    scores = np.full(count, np.nan)
    for row in rows if isinstance(rows, list) else []:
        at = row.get("index") if isinstance(row, dict) else None
        value = row.get("relevance_score", row.get("score")) if isinstance(row, dict) else None
        if (
            not isinstance(at, int)
            or not 0 <= at < count
            or isinstance(value, bool)
            or not isinstance(value, int | float)
        ):
            raise ConfigError(f"{where}: expected {{index, relevance_score}} below index {count}, got {row!r:.80}")
        scores[at] = value
    if not np.isfinite(scores).all():
        told = f"{int(np.isfinite(scores).sum())} of {count} texts were given a score"
        raise ConfigError(f"{where}: {told}; expected `results` with one for each")
    return scores


@lru_cache(maxsize=4)
def _client(base_url: str, retries: int, timeout: float) -> Any:
    import openai

    key = os.environ.get(_KEY)
    if not key:
        raise ConfigError(f"selector rerank_api: set {_KEY} (any text will do for a local server that asks for none)")
    # The SDK's own client brings retries, pauses and timeouts; /rerank is no path it knows of, nor needs to.
    return openai.OpenAI(base_url=base_url, api_key=key, max_retries=retries, timeout=timeout)
