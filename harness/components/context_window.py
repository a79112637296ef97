"""Split a model's context window into system prompt, history, query, response and retrieved context."""

from typing import NamedTuple

from harness.core.errors import ConfigError

TOKENS_PER_TURN = 500
LONGEST_RESPONSE = 2000


class Allocation(NamedTuple):
    """Tokens for each part of a context window; the parts add up to the window."""

    system: int
    history: int
    query: int
    response: int
    context: int

    @property
    def window(self) -> int:
        """The size of the whole window in tokens."""
        return sum(self)


def allocate(window: int, *, turns: int = 0, system: int = 500, query: int = 500) -> Allocation:
    """Split a window of `window` tokens; retrieved context gets what the other parts leave.

    The response gets min(2000, window // 8); the history gets 500 tokens for each of `turns`, at most window // 4.
    Raises ConfigError if an argument is negative or nothing is left for context.

    >>> allocate(128_000, turns=5, system=800)
    Allocation(system=800, history=2500, query=500, response=2000, context=122200)
    """
    if min(window, turns, system, query) < 0:
        raise ConfigError("window, turns, system and query must not be negative")
    response = min(LONGEST_RESPONSE, window // 8)
    history = min(turns * TOKENS_PER_TURN, window // 4)
    context = window - response - history - system - query
    if context <= 0:
        parts = f"system {system}, history {history}, query {query}, response {response}"
        raise ConfigError(f"a window of {window} tokens leaves nothing for context: {parts}")
    return Allocation(system, history, query, response, context)
