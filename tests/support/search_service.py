"""A search service on 127.0.0.1: it ranks paragraphs by shared words, and answers as it is told to."""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """A request that the service got."""

    method: str
    path: str
    headers: dict[str, str]
    query: str
    k: int


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


@dataclass
class SearchService:
    """Passages with the ids of their documents; `misbehave` replaces an answer, unless it returns None."""

    passages: Sequence[tuple[str, str]]
    misbehave: Callable[[Asked, int], Answer | None] = lambda asked, number: None
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def best(self, query: str, k: int) -> list[tuple[str, str, float]]:
        """The best passages for a query: document, text and score."""
        words = set(re.findall(r"\w+", query.lower()))
        scored = [(doc, text, float(len(words & set(re.findall(r"\w+", text.lower()))))) for doc, text in self.passages]
        return sorted(scored, key=lambda one: -one[2])[:k]

    def answer(self, asked: Asked) -> Answer:
        """The answer to a request."""
        self.asked.append(asked)
        odd = self.misbehave(asked, len(self.asked))
        if odd is not None:
            return odd
        hits = [
            {"source": {"doc": doc}, "content": re.sub(r"\s+", "\n ", text), "score": score, "number": at}
            for at, (doc, text, score) in enumerate(self.best(asked.query, asked.k))
        ]
        return as_json({"result": {"hits": hits}})


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON."""
    return status, headers, json.dumps(value).encode()


@contextlib.contextmanager
def serving(service: SearchService) -> Iterator[SearchService]:
    """Run a service."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(content["query"], content["k"])

        def do_GET(self) -> None:
            given = parse_qs(urlsplit(self.path).query)
            self._answer(given["q"][0], int(given["n"][0]))

        def _answer(self, query: str, k: int) -> None:
            asked = Asked(self.command, self.path, dict(self.headers), query, k)
            status, headers, body = service.answer(asked)
            with contextlib.suppress(OSError):  # the client may have gone
                self.send_response(status)
                for name, value in {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(body)),
                    **headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # more than the clients that connect at once, even if this thread has to wait

    server = Server(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}/search"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
