"""A store in an object store: a prefix of a bucket, with a folder of this machine in front of it."""

import contextlib
import datetime
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import ConfigError, StoreError
from harness.core.secrecy import redact
from harness.storage.files import cache_folder, explained, file_name

SCHEMES = ("s3://", "gs://", "az://")
PATIENCE, FIRST_PATIENCE = 180.0, 10.0
"""Seconds to repeat a request that fails with a server's error (such as 503) or a cut connection; at first, a wrong
address is likelier than an outage."""
TIMEOUT = 60.0
"""Seconds to wait for one answer."""

_QUERY = re.compile(r"\?\S+")
_URL = "bucket"
"""The file in the folder before a bucket that contains the bucket's URL."""


class Entry(NamedTuple):
    """An object: its name below the prefix, its size in bytes, and when it was last changed."""

    name: str
    size: int
    modified: datetime.datetime


class Bucket:
    """The objects below a prefix. Every call raises StoreError, in one line, if the object store cannot be used.

    Credentials and the region are those of the environment, as for the provider's own tools (`AWS_ACCESS_KEY_ID`, …).
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def _obstore(self) -> Any:
        try:
            import obstore.exceptions
            import obstore.store
        except ImportError as error:
            message = f"store {self.url}: obstore is missing; pip install 'retrieval-harness[cluster]'"
            raise ConfigError(message) from error
        return obstore

    @cached_property
    def _client(self) -> Any:
        return self._opened(PATIENCE)

    def _opened(self, patience: float) -> Any:
        seconds = datetime.timedelta
        backoff = {"init_backoff": seconds(milliseconds=100), "max_backoff": seconds(seconds=15), "base": 2}
        # A server of one's own, such as MinIO, is often without TLS; the address is the user's own setting.
        options: Any = {
            "client_options": {"timeout": f"{TIMEOUT}s", "connect_timeout": "10s", "allow_http": True},
            "retry_config": {"max_retries": 1000, "retry_timeout": seconds(seconds=patience), "backoff": backoff},
        }
        with self._explained():
            return self._obstore.store.from_url(self.url, **options)

    def require(self) -> None:
        """Raise StoreError, after a few seconds, if the bucket cannot be reached and read."""
        client = self._opened(FIRST_PATIENCE)
        with self._explained():
            self._obstore.list_with_delimiter(client)

    def entry(self, name: str) -> Entry | None:
        """The object of this name, without its content; None if there is none."""
        with self._explained():
            try:
                found = self._obstore.head(self._client, name)
            except FileNotFoundError:
                return None
        return Entry(name, found["size"], found["last_modified"])

    def has(self, name: str) -> bool:
        """Whether there is an object of this name."""
        return self.entry(name) is not None

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is none."""
        with self._explained():
            try:
                return bytes(self._obstore.get(self._client, name).bytes())
            except FileNotFoundError:
                return None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the content of an object that exists, in blocks of some megabytes."""
        with self._explained():
            for block in self._obstore.get(self._client, name).stream(min_chunk_size=2**22):
                yield bytes(block)

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of this name, by a conditional put; return whether it was written."""
        with self._explained():
            try:
                self._obstore.put(self._client, name, content, mode="create")
            except self._obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Write an object over one of the same name."""
        with self._explained():
            self._obstore.put(self._client, name, content)

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        """Yield the objects below a prefix of names, such as `objects/`."""
        with self._explained():
            for block in self._obstore.list(self._client, prefix or None, chunk_size=1000):
                for found in block:
                    yield Entry(found["path"], found["size"], found["last_modified"])

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; those that are gone already do not matter."""
        with self._explained():
            for start in range(0, len(names), 1000):
                with contextlib.suppress(FileNotFoundError):
                    self._obstore.delete(self._client, list(names[start : start + 1000]))

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            if not type(error).__module__.startswith(("obstore", "builtins")):
                raise
            raise StoreError(f"store {self.url}: {_reason(error)}; nothing finished is lost") from error


def _reason(error: Exception) -> str:
    known = {
        "PermissionDeniedError": "permission denied; check the credentials in the environment",
        "UnauthenticatedError": "not authenticated; set the credentials in the environment, such as AWS_ACCESS_KEY_ID",
        "NotFoundError": "there is no such bucket",
        "FileNotFoundError": "there is no such bucket",
        "PermissionError": "permission denied; check the credentials in the environment",
    }
    # obstore adds pages of internals after the first line, and the server's answer; a query may contain a signature.
    said = redact(_QUERY.sub("", str(error).strip().partition("\n")[0].partition(": <")[0]))[:300]
    if "404 Not Found" in said:
        return "there is no such bucket"
    return known.get(type(error).__name__, f"cannot be used ({said})")


def is_url(place: object) -> bool:
    """Whether a place is the URL of an object store, not a folder."""
    return isinstance(place, str) and place.startswith(SCHEMES)


def local_folder(place: str | Path) -> Path:
    """The folder of a store: the place itself, or for a URL the folder of this machine in front of it.

    That folder holds what this machine has written or read, so that nothing is fetched twice. It is in `cache_folder`.
    Raises StoreError if it cannot be created, ConfigError for a
    URL of another kind.
    """
    text = str(place)
    if "://" in text and not is_url(place):
        raise ConfigError(f"--store {text}: expected a folder or a URL that begins with {', '.join(SCHEMES)}")
    if not is_url(place):
        return Path(place)
    url = text.rstrip("/")
    short = hashlib.sha256(url.encode()).hexdigest()[:12]
    folder = cache_folder() / f"{file_name(url.partition('://')[2])}-{short}"
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _URL).is_file():
            temporary = folder / f".{_URL}.{os.getpid()}"
            temporary.write_text(url, encoding="utf-8")
            temporary.replace(folder / _URL)
    return folder


@lru_cache(maxsize=64)
def bucket_of(folder: Path) -> Bucket | None:
    """The bucket that a folder is in front of; None for a store that is only a folder."""
    try:
        return Bucket((folder / _URL).read_text(encoding="utf-8"))
    except OSError:
        return None


def address_of(folder: Path) -> str:
    """What names the store of a folder on any machine: its URL, or the folder."""
    bucket = bucket_of(folder)
    return bucket.url if bucket else str(folder)
