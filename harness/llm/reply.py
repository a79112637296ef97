"""The result of a model call: the parsed answer, or the reason why there is none."""

from typing import NamedTuple

from harness.llm.answer_cache import Call
from harness.llm.answer_schema import Reading
from harness.llm.answers import Failure
from harness.llm.prompter import Prompt
from harness.llm.transport import Reply


class Answer(NamedTuple):
    """The result of a call: the parsed answer or a failure, and the record of the last request if there is one."""

    read: Reading | Failure
    call: Call | None


def read_reply(reply: Reply, prompt: Prompt) -> Reading | Failure:
    """Parse a reply; returns a Failure if the model declined or the answer was filtered or truncated."""
    if reply.refusal:
        return Failure("refusal", reply.refusal[:200])
    if reply.finish == "content_filter":
        return Failure("content_filter", "the server's content filter stopped the answer")
    if reply.finish == "length":
        return Failure("truncated", "the answer was truncated at the token limit")
    return prompt.schema.read(reply.content, list(prompt.slots))
