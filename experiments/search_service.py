"""A search service as another team may run it: paragraphs of the cookbook in SQLite's full text search, over HTTP.

    python experiments/search_service.py                                              # serves until Ctrl-C
    python experiments/search_service.py harness run experiments/side_by_side.yaml    # only while the command runs

`POST /search` with `{"q": …, "limit": …}` returns `{"hits": [{"content": …, "recipe": …, "rank": …}]}`, best first. It
says nothing of offsets, and white space is not that of the documents: what it returns must be located.
"""

import json
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "datasets" / "cookbook" / "corpus.jsonl"
PORT = 8731


def passages() -> Iterator[tuple[str, str]]:
    """The document and the text of each passage: paragraphs, joined until they have 600 characters."""
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        held = ""
        for paragraph in document["text"].split("\n\n"):
            held = f"{held} {' '.join(paragraph.split())}".strip()
            if len(held) > 600:
                yield document["id"], held
                held = ""
        if held:
            yield document["id"], held


class Index:
    """Full text search in memory."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE passages USING fts5(recipe UNINDEXED, content, tokenize='porter')")
        self._db.executemany("INSERT INTO passages VALUES (?, ?)", passages())
        self._lock = threading.Lock()

    def search(self, question: str, limit: int) -> list[dict[str, Any]]:
        """The best passages that have any word of a question."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        found = "SELECT recipe, content FROM passages WHERE passages MATCH ? ORDER BY rank, rowid LIMIT ?"
        with self._lock:
            rows = self._db.execute(found, (words, limit)).fetchall() if words else []
        return [{"content": content, "recipe": recipe, "rank": at} for at, (recipe, content) in enumerate(rows, 1)]


def serve() -> ThreadingHTTPServer:
    """Start the service on this machine."""
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"hits": index.search(asked["q"], asked["limit"])}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    service = serve()
    if sys.argv[1:]:
        sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)
    print(f"http://127.0.0.1:{PORT}/search; stop with Ctrl-C")
    threading.Event().wait()
