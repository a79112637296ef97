"""A server on 127.0.0.1 that speaks S3's protocol (moto), and one that answers with errors."""

import contextlib
import http.server
import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_NUMBER = itertools.count(1)
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret-0042", "AWS_REGION": "us-east-1"}


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The address of a server without buckets."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(address: str) -> str:
    """The URL of a place in a new bucket."""
    import boto3

    name = f"bucket-{next(_NUMBER)}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing-secret-0042",
    )
    client.create_bucket(Bucket=name)
    return f"s3://{name}/some/where"


def use(monkeypatch: "pytest.MonkeyPatch", address: str, cache: object) -> None:
    """Let this process and those it starts use a server, and a folder of this machine in front of its buckets."""
    for name, value in {**KEYS, "AWS_ENDPOINT": address, "HARNESS_CACHE": str(cache)}.items():
        monkeypatch.setenv(name, value)


@contextlib.contextmanager
def failing(status: int, times: int, then: int = 404) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that answers so many requests with one status, and later ones with another."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.send_response(status if len(asked) <= times else then)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = _answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
