"""Secrets: keys and addresses read with care, and one redactor for every text that leaves the process."""

import base64
import html
import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, urlsplit, urlunsplit

from harness.core.errors import ConfigError

REDACTED = "[redacted]"

SHORTEST = 6
"""Characters of a secret. Whoever has to set a key for a local server that asks for none writes `x` or `none`."""

PARTIAL, WORDS = 8, 12
"""Characters in a row of a secret, or of a form it is written in, that are redacted too.

`WORDS` of them where they are lower-case letters and signs alone, as ordinary words are.
"""

_STEP = 3

_PLACEHOLDERS = {
    *("empty", "none", "null", "dummy", "unused", "placeholder", "ollama", "lm-studio", "lmstudio", "llama.cpp"),
    *("not-needed", "no-key", "no-key-required", "token-abc123", "localhost", "changeme"),
}
"""What the documentation of local servers says to set as a key; ordinary words, which documents contain."""

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_USER_INFO = re.compile(r"://([^\s/?#]+)@")
_MASKED = re.compile(r"[\w.\-]{0,16}(?:\*{3,}|•{3,}|x{8,})[\w.\-]{0,16}")

_OURS = ("OPENAI_API_KEY", "RERANK_API_KEY")
"""Variables whose values are sent to servers, whatever they look like."""

_learned: set[str] = set()


def api_key(variable: str) -> str | None:
    """The key in an environment variable, without the white space around it; None where there is none.

    Raises ConfigError, which does not show the key, where it could not be sent in a header.
    """
    key = os.environ.get(variable, "").strip().strip("\ufeff")
    if not key:
        return None
    wrong = next((at for at, character in enumerate(key) if not "!" <= character <= "~"), None)
    if wrong is not None:
        raise ConfigError(
            f"{variable}: character {wrong + 1} of {len(key)} is {_kind(key[wrong])}; "
            "set it to one line of letters, digits and signs, as the server's operator gave it"
        )
    return key


def _kind(character: str) -> str:
    if character.isspace():
        return "white space"
    return "a control character" if not character.isprintable() else "not ASCII"


def address_fault(address: str) -> str | None:
    """What is wrong with a server's address, without showing it; None where it can be used."""
    advice = "write it like http://localhost:11434/v1"
    if any(not "!" <= character <= "~" for character in address):
        return f"holds a control character, white space or a character beyond ASCII; {advice}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return f"is no address; {advice}"
    if "?" in address or "#" in address:
        return f"holds a query (?…), which cannot stand before the path of a request; {advice}"
    return None


def bare_address(address: str) -> str:
    """An address without user, password, query and fragment: what may be shown and filed under."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, f"{parts.hostname or ''}{port}", parts.path.rstrip("/"), "", ""))


def holds_credentials(address: str) -> bool:
    """Whether an address holds a user, a password or a key."""
    return bool(list(_in_address(address)))


def learn(secret: str) -> None:
    """Have a secret redacted that is not in the environment, such as the password in an address given on the way."""
    _learned.update(_in_address(secret) if "://" in secret else [secret])


def redact(text: str) -> str:
    """The text without the secrets this process knows, however they are written: encoded, escaped, or in part.

    Known are the values of environment variables that are named like secrets, the credentials in those that hold
    addresses, and what `learn` was given. Takes time in proportion to the text.
    """
    return _redactor(_known()).text(text) if text else text


def redact_file(path: Path) -> None:
    """Redact a file in place; of a file that holds no secret not a byte changes."""
    if not _known():
        return
    before = path.read_bytes()
    # Byte by byte a character each, so that what is no text stays what it is.
    after = redact(before.decode("latin-1")).encode("latin-1")
    if after != before:
        path.write_bytes(after)


def reveals(text: str) -> bool:
    """Whether a text holds a secret, or a part of one."""
    return redact(text) != text


def _known() -> frozenset[str]:
    return _secrets(tuple(sorted(os.environ.items())), frozenset(_learned))


@lru_cache(maxsize=4)
def _secrets(environment: tuple[tuple[str, str], ...], learned: frozenset[str]) -> frozenset[str]:
    found = set(learned)
    for name, value in environment:
        # The path of a file is no secret; but one key in sixty begins with a slash.
        if name in _OURS or (_SECRET_NAME.search(name) and not value.startswith(("/", "~", "./", "../"))):
            found.add(value.strip().strip("\ufeff"))
        if "://" in value:
            found.update(_in_address(value))
    return frozenset(one for one in found if len(one) >= SHORTEST and one.lower() not in _PLACEHOLDERS)


def _in_address(address: str) -> Iterable[str]:
    """The password of an address, or its user where that is all there is, and long values of parameters."""
    for found in _USER_INFO.findall(address):
        user, _, password = found.partition(":")
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
        """Whether `sk-ab*****yz` can stand for a secret: it begins or ends as one does."""
        left, right = re.split(r"\*+|•+|x{8,}", shown, maxsplit=1)
        right = re.split(r"\*+|•+|x{8,}", right)[-1]
        return any(
            (len(left) > 2 and secret.startswith(left)) or (len(right) > 2 and secret.endswith(right))
            for secret in self._secrets
        )


def _forms(secret: str) -> set[str]:
    """The ways a secret may be written: as it is, percent-encoded, escaped, in base64 at any offset, in hex."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, secret.upper(), secret.lower(), unquote(secret), quote(secret, safe=""), quote_plus(secret)}
    forms |= {html.escape(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    forms |= {raw.hex(), raw.hex().upper(), raw.decode("latin-1")}
    for offset in range(3):
        # The characters at both ends depend on the bytes around the secret as well.
        encoded = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        inner = encoded[(0, 2, 3)[offset] : len(encoded) - (1 if (len(raw) + offset) % 3 else 0)]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= SHORTEST}


def _runs(text: str, form: str, run: int) -> Iterable[tuple[int, int]]:
    """Where at least `run` characters in a row of a form occur.

    Every such run holds one of the pieces that begin at each third character; only those are looked at closely.
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
