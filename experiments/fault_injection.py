"""What a judge's failures do to a mean: twenty calls in a hundred fail, at random, or where nothing is relevant.

Runs without a key: the judge is a stand-in on 127.0.0.1 that grades by shared words. Everything else is the harness.
"""

import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness import read_experiment, run
from harness.evaluation.results import Judged
from harness.running.judging.judging import Judging
from harness.running.models import Models, answers_of
from harness.running.session import Session

FENCE = re.compile(r"<<(c\d\d|question):\w+>>\n(.*?)\n<</\1:", re.DOTALL)
Fails = Callable[[str, int], bool]
"""Whether the call about this question fails, whose best passage has this grade."""


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def grade(question: str, passage: str) -> int:
    """0 to 3, by the share of the question's words that the passage has."""
    asked = words(question)
    return min(3, int(6 * len(asked & words(passage)) / max(1, len(asked))))


class StandIn(BaseHTTPRequestHandler):
    """Answers as a chat server would; in prose, which is no answer, where `fails` says so."""

    fails: Fails = staticmethod(lambda question, best: False)  # type: ignore[assignment]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][1]["content"]
        given = dict(FENCE.findall(prompt))
        question = given.pop("question", "")
        slots = list(given.items())
        graded = {slot: {"why": "shared words", "grade": grade(question, text)} for slot, text in slots}
        probe = {"c01": {"grade": 3}, "c02": {"grade": 0}}
        best = max((shown["grade"] for shown in graded.values()), default=3)
        # What a model does that has nothing to say: it says so, in prose.
        prose = "None of the passages answers the question."
        failing = bool(slots) and type(self).fails(question, best)
        message = {"role": "assistant", "content": prose if failing else json.dumps(graded or probe)}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 25 * max(1, len(slots))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return self.answer(200, {"id": "1", "model": body["model"], "choices": [choice], "usage": usage})

    def answer(self, status: int, content: object) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


class Row(NamedTuple):
    """One trial under one kind of failure: what others make of the same calls, and what the harness does."""

    trial: str
    nanmean: float
    as_zero: float
    judged: Judged


def judged(fails: Fails, folder: Path) -> list[Row]:
    StandIn.fails = staticmethod(fails)  # type: ignore[assignment]
    study = read_experiment(Path(__file__).with_suffix(".yaml"))
    launch = run(study, store=folder, log=False, models=Models(price=(0.1, 0.4)))
    session = Session(study, folder)
    judging = Judging(session, answers_of(session))
    rows = []
    for trial, result in zip(session.trials, launch.results, strict=True):
        findings = [row["judges"]["context_precision"]["findings"] for row in judging.rows(trial)]
        grades = [[finding["judgments"][0].get("grade") for finding in found] for found in findings]
        shares = [np.mean([(grade or 0) >= 2 for grade in row] or [0]) for row in grades]
        # A row is NaN as soon as one of its labels is missing, and nanmean leaves it out.
        known = [share for share, row in zip(shares, grades, strict=True) if None not in row]
        measured = result.judged["context_precision"]
        rows.append(Row(result.name, float(np.mean(known)), float(np.mean(shares)), measured))
    return rows


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"}

    def never(question: str, best: int) -> bool:
        return False

    def one_in_five(question: str, best: int) -> bool:
        return int(hashlib.sha256(f"bQuestion: {question}".encode()).hexdigest()[:8], 16) % 5 == 0

    def barren(question: str, best: int) -> bool:
        return best < 2

    head = f"{'failing calls':<17}{'trial':<10}{'truth':>6}{'nanmean':>9}{'as 0':>7}   "
    print(f"{head}{'ours':<9}{'in any case':<16}complete")
    with tempfile.TemporaryDirectory() as folder:
        truth = {row.trial: row.judged.mean for row in judged(never, Path(folder, "none"))}
        kinds = {"none": never, "20 % at random": one_in_five, "nothing relevant": barren}
        for kind, fails in kinds.items():
            for row in judged(fails, Path(folder, kind)):
                ours = "withheld" if row.judged.withheld else f"{row.judged.mean:.3f}"
                low, high = row.judged.bounds
                others = f"{truth[row.trial]:>6.3f}{row.nanmean:>9.3f}{row.as_zero:>7.3f}"
                complete = f"{row.judged.complete}/{row.judged.total}"
                print(f"{kind:<17}{row.trial:<10}{others}   {ours:<9}{low:.3f} … {high:<8.3f}{complete}")


if __name__ == "__main__":
    main()
