"""What a call to a model brought: a reading of the answer, or why there is none."""

from typing import NamedTuple

from harness.llm.answer_cache import Call
from harness.llm.answer_schema import Reading
from harness.llm.answers import Failure
from harness.llm.prompter import Prompt
from harness.llm.transport import Reply


class Answer(NamedTuple):
    """What a call brought: a reading of the answer or a failure of the whole, and the record of the last request."""

    read: Reading | Failure
    call: Call | None


def read_reply(reply: Reply, prompt: Prompt) -> Reading | Failure:
    """What a reply says, or why it says nothing."""
    if reply.refusal:
        return Failure("refusal", reply.refusal[:200])
    if reply.finish == "content_filter":
        return Failure("content_filter", "the server's filter stopped the answer")
    if reply.finish == "length":
        return Failure("truncated", "the answer was cut at the token limit")
    return prompt.schema.read(reply.content, list(prompt.slots))
