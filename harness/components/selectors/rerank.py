"""Reranking with a local cross-encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.components.component import runtime
from harness.components.padding import padded_batches
from harness.components.roles import Reranker
from harness.core.errors import ConfigError
from harness.core.records import Floats
from harness.storage.files import folder_digest


@dataclass(frozen=True)
class Rerank(Reranker):
    """Rank by a sentence-transformers cross-encoder, which reads query and passage together; keep the best `k`.

    `model` is a name or a folder. Scores are the model's own, for most models between 0 and 1. A pair's score does not
    depend on its batch. Texts longer than the model's window are truncated. Nogueira & Cho, Passage Re-ranking with
    BERT, 2019.
    """

    model: str = "cross-encoder/ms-marco-MiniLM-L6-v2"
    revision: str | None = None
    device: str = runtime("cpu")

    def facts(self) -> dict[str, str]:
        """The digest of a model folder, so that a model retrained in place is a different model."""
        folder = Path(self.model)
        return {"content": folder_digest(folder)} if folder.is_dir() else {}

    def packages(self) -> dict[str, str]:
        """torch and sentence-transformers, from the extra `local`."""
        return {"torch": "local", "sentence_transformers": "local"}

    def score(self, query: str, texts: Sequence[str]) -> Floats:
        """Return the model's score for each text, (texts,). Raises ConfigError if the model cannot be loaded."""
        model = _load(self.model, self.revision, self.device, self.facts().get("content", ""))
        import torch

        scores = np.empty(len(texts))
        if not texts:
            return scores
        longest = model.max_seq_length or model.tokenizer.model_max_length
        encoded = model.tokenizer([query] * len(texts), list(texts), truncation=True, max_length=longest)
        for rows, features in padded_batches(model.tokenizer, encoded, longest):
            with torch.inference_mode():
                logits = model.forward(dict(features.to(self.device)))["scores"].float()
                scores[rows] = model.activation_fn(logits).reshape(-1).cpu().numpy()[: len(rows)]
        return scores


@lru_cache(maxsize=2)
def _load(name: str, revision: str | None, device: str, content: str) -> Any:
    # `content` is part of the cache key, so that a changed folder is loaded again.
    try:
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging
    except ImportError as error:
        raise ConfigError(
            "selector rerank: sentence-transformers is missing; pip install 'retrieval-harness[local]'"
        ) from error
    logging.disable_progress_bar()
    try:
        model = CrossEncoder(name, revision=revision, device=device)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"selector rerank: the model '{name}' is not a folder, not cached, and could not be downloaded "
            f"({str(error).splitlines()[0]})"
        ) from error
    if model.num_labels != 1:
        raise ConfigError(f"selector rerank: '{name}' returns {model.num_labels} scores per pair; expected one")
    return model.eval()
