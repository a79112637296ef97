"""Prefixes that well-known families of embedding models were trained with; without them they retrieve worse."""

import re

_BGE = "Represent this sentence for searching relevant passages: "
_FAMILIES = (
    (r"(?:^|/)(?:multilingual-)?e5-(?!.*instruct)", "query: ", "passage: "),
    (r"bge-(?:small|base|large)-en", _BGE, ""),
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"snowflake-arctic-embed", _BGE, ""),
    (r"mxbai-embed-large", _BGE, ""),
)


def expected_prompts(model: str) -> tuple[str, str] | None:
    """The query and document prompts of a model's family, by its name; None if it needs none or is unknown.

    >>> expected_prompts("intfloat/e5-base-v2"), expected_prompts("all-MiniLM-L6-v2")
    (('query: ', 'passage: '), None)
    """
    name = model.casefold()
    return next(((query, document) for family, query, document in _FAMILIES if re.search(family, name)), None)


def missing_prompts(model: str, query_prompt: str, document_prompt: str) -> str | None:
    """A warning if a model is used without the prompts of its family; else None."""
    wanted = expected_prompts(model)
    if wanted is None or query_prompt or document_prompt:
        return None
    query, document = wanted
    text = f"query_prompt: {query!r}" + (f" and document_prompt: {document!r}" if document else "")
    return f"{model} was trained with prefixes and retrieves worse without them; set {text}"
