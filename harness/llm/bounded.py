"""An HTTP client that reads no more of an answer than a limit, whatever its status and however it is packed."""

import zlib
from collections.abc import AsyncIterator

import httpx2

LARGEST = 8_000_000
"""Bytes of an answer, packed or unpacked; no label, and no batch of vectors of the usual sizes, is as long."""

ANSWERED = "harness.answered"
"""In a request's extensions: its answer had begun."""

_PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Encodings that are understood, with zlib's window bits."""


class TooLargeError(httpx2.DecodingError):
    """An answer beyond the limit."""


def bounded_client(largest: int = LARGEST) -> httpx2.AsyncClient:
    """A client that raises TooLargeError while it reads what exceeds the limit.

    It follows no redirect: that would carry the texts, and maybe the key, to a host nobody named.
    """

    async def bound(response: httpx2.Response) -> None:
        encodings = [one.strip().lower() for one in response.headers.get("content-encoding", "").split(",")]
        response.stream = _Bounded(
            response.stream,  # type: ignore[arg-type]
            _Unpacker([one for one in encodings if one not in ("", "identity")], largest),
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
    def __init__(self, packed: httpx2.AsyncByteStream, unpacker: "_Unpacker") -> None:
        self._packed, self._unpacker = packed, unpacker

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._packed:
            yield self._unpacker.unpacked(piece)
        self._unpacker.end()

    async def aclose(self) -> None:
        await self._packed.aclose()


class _Unpacker:
    """Undoes one compression, never more: what is packed twice is made to burst."""

    def __init__(self, encodings: list[str], largest: int) -> None:
        self._inflate = None
        self._left = self._packed_left = self._largest = largest
        self._fault = ""
        if len(encodings) > 1:
            self._fault = f"an answer packed {len(encodings)} times over"
        elif encodings and encodings[0] not in _PACKED:
            self._fault = f"an answer packed with {encodings[0][:20]!r}, which was not asked for"
        elif encodings:
            self._inflate = zlib.decompressobj(_PACKED[encodings[0]])

    def unpacked(self, piece: bytes) -> bytes:
        if self._fault:
            raise TooLargeError(self._fault)
        self._packed_left -= len(piece)
        if self._inflate is not None:
            try:
                piece = self._inflate.decompress(piece, self._left + 1)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from error
        self._left -= len(piece)
        if min(self._left, self._packed_left) < 0:
            raise TooLargeError(f"an answer of more than {self._largest // 1_000_000} MB")
        return piece

    def end(self) -> None:
        if self._inflate is not None and not self._inflate.eof:
            raise httpx2.DecodingError("the packed answer is cut short")
