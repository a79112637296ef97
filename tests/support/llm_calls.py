"""What tests of calls to language models share."""

from typing import Any

from judged_questions import case
from openai_server import Server

from harness.llm.answer_cache import Call

MANY = [case(f"Question {at}?", [f"Passage {at}-{n}." for n in range(10)]) for at in range(40)]


PRICE = (1.0, 2.0)


def dollars(server: Server) -> float:
    """The cost by the server's own count."""
    return (server.prompt_tokens * PRICE[0] + server.output_tokens * PRICE[1]) / 1e6


def a_call(**changes: Any) -> Call:
    return Call("1", "e", "m", "m-2", "ok", 0.0, 1.0, 400, 100, 5, 0, 0.01, b"{}")._replace(**changes)
