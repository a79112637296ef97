"""Secrets: reads API keys and server addresses, and redacts secrets from every text that leaves the process."""

import base64
import html
import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit, urlunsplit

from harness.core.errors import ConfigError

REDACTED = "[redacted]"

SHORTEST = 6
"""Minimum length of a secret, in characters. For a local server that needs no key, people set `x` or `none`."""

PARTIAL, WORDS = 8, 12
"""Minimum length, in characters, of a part of a secret (or of an encoded form of it) that is redacted too.

`WORDS` applies to parts without upper-case letters and digits, since those may be ordinary words.
"""

_STEP = 3

_PLACEHOLDERS = {
    *("empty", "none", "null", "dummy", "unused", "placeholder", "ollama", "lm-studio", "lmstudio", "llama.cpp"),
    *("not-needed", "no-key", "no-key-required", "token-abc123", "localhost", "changeme"),
}
"""Keys that the documentation of local servers suggests. They are ordinary words, which documents contain."""

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_USER_INFO = re.compile(r"://([^\s/?#]+)@")
_MASKED = re.compile(r"[\w.\-]{0,16}(?:\*{3,}|•{3,}|x{8,})[\w.\-]{0,16}")

_OURS = ("OPENAI_API_KEY", "RERANK_API_KEY")
"""Variables whose values are sent to servers and are therefore always redacted."""

_learned: set[str] = set()


def api_key(variable: str) -> str | None:
    """The key in an environment variable, without surrounding white space; None if the variable is unset or empty.

    Raises ConfigError, without showing the key, if the key cannot be sent in a header.
    """
    key = os.environ.get(variable, "").strip().strip("\ufeff")
    if not key:
        return None
    wrong = next((at for at, character in enumerate(key) if not "!" <= character <= "~"), None)
    if wrong is not None:
        raise ConfigError(
            f"{variable}: character {wrong + 1} of {len(key)} is {_kind(key[wrong])}; "
            "set it to one line of letters, digits and punctuation, as issued by the server's operator"
        )
    return key


def _kind(character: str) -> str:
    if character.isspace():
        return "white space"
    return "a control character" if not character.isprintable() else "not ASCII"


def address_fault(address: str) -> str | None:
    """What is wrong with a server's address, without showing the address; None if it can be used."""
    advice = "write it like http://localhost:11434/v1"
    if any(not "!" <= character <= "~" for character in address):
        return f"contains a control character, white space or a non-ASCII character; {advice}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return f"is not an address; {advice}"
    if "?" in address or "#" in address:
        return f"contains a query (?…) or fragment (#…), which cannot come before the path of a request; {advice}"
    return None


def bare_address(address: str) -> str:
    """An address without user, password, query and fragment, safe to show and to use in stored keys."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, f"{parts.hostname or ''}{port}", parts.path.rstrip("/"), "", ""))


def holds_credentials(address: str) -> bool:
    """Whether an address contains a user, a password or a key."""
    return bool(list(_in_address(address)))


def learn(secret: str) -> None:
    """Redact this secret too, which is not in the environment, such as the password in an address from a setting."""
    _learned.update(_in_address(secret) if "://" in secret else [secret])


def redact(text: str) -> str:
    """The text with all secrets known to this process replaced, whether plain, encoded, escaped or partial.

    Known secrets are the values of environment variables with names like API_KEY, the credentials in addresses in
    environment variables, and what was passed to `learn`. The time is proportional to the length of the text.
    """
    return _redactor(_known()).text(text) if text else text


def redact_file(path: Path) -> None:
    """Redact a file in place; a file without secrets stays byte for byte the same."""
    if not _known():
        return
    before = path.read_bytes()
    # latin-1 maps each byte to one character, so that binary content survives the round trip.
    after = redact(before.decode("latin-1")).encode("latin-1")
    if after != before:
        path.write_bytes(after)


_NAME = re.compile(r"[a-z0-9_@.:]+")
"""Keys that are names of the format, of metrics or of outcomes, without which nobody could read a file."""


def redact_values(value: Any) -> Any:
    """Return JSON-serializable values with redacted texts. Numbers stay as they are, and so do names as keys."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        keys = {key: key if _NAME.fullmatch(key) else redact(key) for key in value}
        return {keys[key]: redact_values(inner) for key, inner in value.items()}
    return [redact_values(inner) for inner in value] if isinstance(value, list | tuple) else value


def redact_json_file(path: Path) -> None:
    """Redact the texts of a JSON file in place; a file without secrets stays byte for byte the same."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if redact(text) != text:
        path.write_text(json.dumps(redact_values(json.loads(text)), indent=1, ensure_ascii=False), encoding="utf-8")


def reveals(text: str) -> bool:
    """Whether a text contains a secret, or a part of one."""
    return redact(text) != text


def _known() -> frozenset[str]:
    return _secrets(tuple(sorted(os.environ.items())), frozenset(_learned))


@lru_cache(maxsize=4)
def _secrets(environment: tuple[tuple[str, str], ...], learned: frozenset[str]) -> frozenset[str]:
    found = set(learned)
    for name, value in environment:
        # A file path is not a secret, so values that look like paths are skipped; one API key in sixty begins with "/".
        if name in _OURS or (_SECRET_NAME.search(name) and not value.startswith(("/", "~", "./", "../"))):
            found.add(value.strip().strip("\ufeff"))
        if "://" in value:
            found.update(_in_address(value))
    return frozenset(one for one in found if len(one) >= SHORTEST and one.lower() not in _PLACEHOLDERS)


def _in_address(address: str) -> Iterable[str]:
    """The password of an address, or its user if there is no password, and long values of query parameters.

    Tokens are sent as users, but not to PostgreSQL.
    """
    for found in _USER_INFO.findall(address):
        user, _, password = found.partition(":")
        if password or not address.startswith(("postgresql:", "postgres:")):
            yield from {password or user, unquote(password or user)}
    query = address.partition("?")[2].partition("#")[0]
    for parameter in query.split("&"):
        value = parameter.partition("=")[2]
        if len(value) > PARTIAL:
            yield value


@lru_cache(maxsize=4)
def _redactor(secrets: frozenset[str]) -> "_Redactor":
    return _Redactor(secrets)


class _Redactor:
    def __init__(self, secrets: frozenset[str]) -> None:
        self._secrets = secrets
        forms = {form for secret in secrets for form in _forms(secret)}
        self._forms = {form: min(PARTIAL, len(form)) for form in sorted(forms, key=len, reverse=True)}

    def text(self, text: str) -> str:
        if not self._forms:
            return text
        spans = [span for form, run in self._forms.items() for span in _runs(text, form, run)]
        if "***" in text or "•••" in text or "xxxxxxxx" in text:
            spans += [found.span() for found in _MASKED.finditer(text) if self._masks(found[0])]
        return _without(text, spans) if spans else text

    def _masks(self, shown: str) -> bool:
        """Whether `sk-ab*****yz` may be a masked secret: it begins or ends like one."""
        left, right = re.split(r"\*+|•+|x{8,}", shown, maxsplit=1)
        right = re.split(r"\*+|•+|x{8,}", right)[-1]
        return any(
            (len(left) > 2 and secret.startswith(left)) or (len(right) > 2 and secret.endswith(right))
            for secret in self._secrets
        )


def _forms(secret: str) -> set[str]:
    """The ways a secret may be written: plain, percent-encoded, escaped, in base64 at any offset, in hex."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, secret.upper(), secret.lower(), unquote(secret), quote(secret, safe=""), quote_plus(secret)}
    forms |= {html.escape(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    forms |= {raw.hex(), raw.hex().upper(), raw.decode("latin-1")}
    for offset in range(3):
        # The first and last characters also depend on the bytes around the secret.
        encoded = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        inner = encoded[(0, 2, 3)[offset] : len(encoded) - (1 if (len(raw) + offset) % 3 else 0)]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= SHORTEST}


def _runs(text: str, form: str, run: int) -> Iterable[tuple[int, int]]:
    """The spans of `text` that match at least `run` consecutive characters of a form.

    Every such span contains one of the pieces that begin at every third character of the form, so only the places
    where such a piece occurs are examined.
    """
    size = max(1, run - _STEP + 1)
    for at in range(0, len(form) - size + 1, _STEP if len(form) > run else 1):
        piece, found = form[at : at + size], -1
        done = 0
        while (found := text.find(piece, max(found + 1, done))) >= 0:
            start, begin = found, at
            while start and begin and text[start - 1] == form[begin - 1]:
                start, begin = start - 1, begin - 1
            end, stop = found + size, at + size
            while end < len(text) and stop < len(form) and text[end] == form[stop]:
                end, stop = end + 1, stop + 1
            if end - start >= run and (end - start >= min(WORDS, len(form)) or not _wordlike(text[start:end])):
                yield start, end
                done = end - size + 1


def _wordlike(text: str) -> bool:
    return text == text.lower() and not any(character.isdigit() for character in text)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not parts:
            parts += [text[done:start], REDACTED]
        done = max(done, end)
    return "".join([*parts, text[done:]])
