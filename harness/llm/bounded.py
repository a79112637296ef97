"""An HTTP client that limits the size of responses, of any status and compression."""

import zlib
from collections.abc import AsyncIterator

import httpx2

LARGEST = 8_000_000
"""Default limit in bytes of a response, compressed or not; labels and usual batches of vectors are smaller."""

ANSWERED = "harness.answered"
"""Key in a request's extensions: the response had begun."""

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Supported content encodings, with the window bits for zlib."""


class TooLargeError(httpx2.DecodingError):
    """A response that exceeds the limit."""


def bounded_client(largest: int = LARGEST) -> httpx2.AsyncClient:
    """A client that raises TooLargeError while reading a response of more than `largest` bytes.

    It follows no redirects, because these could send the texts and the key to another host.
    """

    async def bound(response: httpx2.Response) -> None:
        encodings = [one.strip().lower() for one in response.headers.get("content-encoding", "").split(",")]
        response.stream = _Bounded(
            response.stream,  # type: ignore[arg-type]
            _Decompressor([one for one in encodings if one not in ("", "identity")], largest),
        )
        response.headers.pop("content-encoding", None)
        response.request.extensions = {**response.request.extensions, ANSWERED: True}

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "gzip, deflate"},
        event_hooks={"response": [bound]},
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=256, max_keepalive_connections=128),
    )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, decompressor: "_Decompressor") -> None:
        self._stream, self._decompressor = stream, decompressor

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield self._decompressor.decompressed(piece)
        self._decompressor.end()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Decompressor:
    """Undoes one layer of compression; nested compression is rejected as a possible decompression bomb."""

    def __init__(self, encodings: list[str], largest: int) -> None:
        self._inflate = None
        self._left = self._compressed_left = self._largest = largest
        self._fault = ""
        if len(encodings) > 1:
            self._fault = f"the answer is compressed {len(encodings)} times"
        elif encodings and encodings[0] not in _WINDOW_BITS:
            self._fault = f"the answer is compressed with {encodings[0][:20]!r}, which was not requested"
        elif encodings:
            self._inflate = zlib.decompressobj(_WINDOW_BITS[encodings[0]])

    def decompressed(self, piece: bytes) -> bytes:
        if self._fault:
            raise TooLargeError(self._fault)
        self._compressed_left -= len(piece)
        if self._inflate is not None:
            try:
                piece = self._inflate.decompress(piece, self._left + 1)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from error
        self._left -= len(piece)
        if min(self._left, self._compressed_left) < 0:
            raise TooLargeError(f"the answer is larger than {self._largest // 1_000_000} MB")
        return piece

    def end(self) -> None:
        if self._inflate is not None and not self._inflate.eof:
            raise httpx2.DecodingError("the compressed answer is truncated")
