"""Any server that speaks OpenAI's embeddings protocol."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from harness.component import Embedder, Positive, runtime
from harness.embedders.prompts import missing_prompts
from harness.errors import ConfigError
from harness.model import Embedded


@dataclass(frozen=True)
class Api(Embedder):
    """An OpenAI-compatible embeddings server: `base_url`, else OPENAI_BASE_URL, else OpenAI; key in OPENAI_API_KEY.

    The server decides what happens to texts beyond its window. `usd_per_million_tokens` lets `plan` tell the cost.
    """

    metered: ClassVar[bool] = True

    model: str = "text-embedding-3-small"
    dimensions: Positive | None = None
    base_url: str | None = None
    query_prompt: str = ""
    document_prompt: str = ""
    usd_per_million_tokens: float | None = runtime(None)
    batch: Positive = runtime(128)
    retries: int = runtime(5)

    @property
    def price(self) -> float | None:
        return self.usd_per_million_tokens

    def advice(self) -> str | None:
        return missing_prompts(self.model, self.query_prompt, self.document_prompt)

    def facts(self) -> dict[str, str]:
        """The server that the environment names is part of the identity where the settings name none."""
        server = os.environ.get("OPENAI_BASE_URL", "")
        return {"server": server} if server and self.base_url is None else {}

    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        import openai

        client = _client(self.base_url, self.retries)
        prompt = self.query_prompt if queries else self.document_prompt
        options: dict[str, Any] = {} if self.dimensions is None else {"dimensions": self.dimensions}
        rows: list[Sequence[float]] = []
        for start in range(0, len(texts), self.batch):
            # Servers refuse an empty text; a space embeds as nothing in particular.
            block = [(prompt + text) or " " for text in texts[start : start + self.batch]]
            try:
                answer = client.embeddings.create(model=self.model, input=block, encoding_format="float", **options)
            except openai.OpenAIError as error:
                raise ConfigError(f"embedder api: {self.model} at {client.base_url}: {_one_line(error)}") from error
            if len(answer.data) != len(block):
                got = f"answered {len(block)} texts with {len(answer.data)} vectors"
                raise ConfigError(f"embedder api: {self.model} at {client.base_url} {got}")
            rows += [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        vectors = np.array(rows, np.float32).reshape(len(texts), -1) if texts else np.empty((0, 0), np.float32)
        return Embedded(vectors, np.zeros(len(texts), np.bool_))


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


@lru_cache(maxsize=4)
def _client(base_url: str | None, retries: int) -> Any:
    import openai

    try:
        return openai.OpenAI(base_url=base_url, max_retries=retries)
    except openai.OpenAIError:
        raise ConfigError(
            "embedder api: set OPENAI_API_KEY (any text will do for a local server that asks for none)"
        ) from None
