"""Files of a data set that are at a URL: fetched once, into a folder of this machine, and checked by their SHA-256."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from harness.core.errors import DataError
from harness.core.progress import progress
from harness.core.secrecy import redact
from harness.storage.bucket import SCHEMES, Bucket
from harness.storage.files import cache_folder, explained, file_name

WEB = ("http://", "https://")
_BLOCK = 2**20
_SECONDS = 60.0


def is_remote(name: str) -> bool:
    """Whether the name of a file is a URL."""
    return name.startswith((*WEB, *SCHEMES))


def local_path(url: str) -> Path:
    """The path of a URL's file on this machine, in `cache_folder`."""
    name = PurePosixPath(urlsplit(url).path).name or "file"
    return cache_folder() / "files" / hashlib.sha256(url.encode()).hexdigest()[:16] / file_name(name)


def fetch(url: str, path: Path) -> None:
    """Write the content of a URL to a file, whole or not at all. Raises DataError if it cannot be had."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with explained(path.parent), contextlib.ExitStack() as stack:
        path.parent.mkdir(parents=True, exist_ok=True)
        stack.callback(draft.unlink, missing_ok=True)
        size, blocks = stack.enter_context(_of_web(url) if url.startswith(WEB) else _of_bucket(url))
        with draft.open("wb") as file, progress(f"fetch {path.name}", max(size, 1), unit="bytes") as advance:
            for block in blocks:
                file.write(block)
                advance(len(block))
        draft.replace(path)


@contextlib.contextmanager
def _of_web(url: str) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The size of what a server has at a URL, if it says, and its content in blocks."""
    import httpx2

    try:
        with httpx2.stream("GET", url, follow_redirects=True, timeout=_SECONDS) as response:
            if response.status_code != 200:
                raise DataError(f"{redact(url)}: the server answered {response.status_code}")
            yield int(response.headers.get("content-length") or 0), response.iter_bytes(_BLOCK)
    except httpx2.HTTPError as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{redact(url)}: cannot be fetched ({redact(said)})") from None


@contextlib.contextmanager
def _of_bucket(url: str) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The size of an object, and its content in blocks."""
    folder, _, name = url.rpartition("/")
    bucket = Bucket(folder)
    entry = bucket.entry(name)
    if entry is None:
        raise DataError(f"{url}: there is no such object")
    yield entry.size, bucket.blocks(name)
