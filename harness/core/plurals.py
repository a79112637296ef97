"""Counts with their nouns: 1 trial, 2 trials."""


def plural(count: int, noun: str, verb: str = "") -> str:
    """A count with its noun in the right number, and with `is` or `are` if `verb` is "is".

    >>> plural(1, "trial"), plural(1200, "query"), plural(2, "box"), plural(1, "trial", "is")
    ('1 trial', '1,200 queries', '2 boxes', '1 trial is')
    """
    words = f"{count:,} {noun if count == 1 else _several(noun)}"
    verbs = {"is": "are", "has": "have", "was": "were"}
    return f"{words} {verb if count == 1 else verbs[verb]}" if verb else words


def singular(words: str) -> str:
    """Words with their first plural in the singular, for a count of 1.

    >>> singular("validation queries without evidence")
    'validation query without evidence'
    """
    parts = words.split(" ")
    at = next((at for at, word in enumerate(parts) if word.endswith("s") and not word.endswith("ss")), None)
    if at is not None:
        word = parts[at]
        parts[at] = f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
    return " ".join(parts)


def _several(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch")) else f"{noun}s"
