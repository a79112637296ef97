"""Sentence boundaries from NLTK's trained Punkt models."""

from functools import lru_cache
from typing import Any

from harness.core.errors import ConfigError
from harness.core.tokenizer import installed_file


def sentence_spans(text: str, language: str) -> list[tuple[int, int]]:
    """The `(start, end)` character offsets of each sentence, without surrounding white space.

    Raises ConfigError if there is no Punkt model for `language` on this machine.
    """
    return list(_punkt(language).span_tokenize(text))


@lru_cache(maxsize=4)
def _punkt(language: str) -> Any:
    # Imported here: nltk imports scipy, which takes seconds.
    import nltk.data
    from nltk.tokenize.punkt import PunktTokenizer

    bundled = installed_file("llama_index.core", "_static", "nltk_cache")
    if bundled and str(bundled) not in nltk.data.path:
        nltk.data.path.append(str(bundled))
    try:
        return PunktTokenizer(language)
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"sentences: NLTK's punkt_tab has no model for '{language}' on this machine; install the extra "
            "[offline], or run `python -m nltk.downloader punkt_tab`"
        ) from error
