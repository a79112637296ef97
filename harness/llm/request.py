"""Builds the body of a request from a prompt, adapted to the capabilities of the server."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from harness.llm.prompter import Prompt, Prompter

MODES = ("json_schema", "json_object", "plain")
"""Ways to request a response format, from the strictest to the loosest."""

FRAME = 256
"""Allowance in bytes for what a server adds around the messages, used in upper bounds of the cost."""

_REASONING = {None: 0, "none": 0, "minimal": 500, "low": 2000, "medium": 8000, "high": 16000}
_LONGEST = 8192
"""Maximum tokens of an answer without reasoning; an answer that exceeds them is assumed never to end."""


@dataclass(frozen=True)
class Capabilities:
    """What a server supports for a model: the mode, the name of the token limit, and unsupported parameters."""

    mode: str = MODES[0]
    limit: str = "max_completion_tokens"
    without: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: Mapping[str, Any]) -> "Capabilities":
        """Build from JSON values, as written by `plain`."""
        return cls(text["mode"], text["limit"], tuple(text["without"]))

    def plain(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    def refused(self, parameter: str | None) -> "Capabilities | None":
        """The capabilities without a parameter that the server refused; None if there is no other way to send it."""
        if parameter == "response_format" and self.mode != MODES[-1]:
            return replace(self, mode=MODES[MODES.index(self.mode) + 1])
        if parameter == "max_completion_tokens" and self.limit == parameter:
            return replace(self, limit="max_tokens")
        optional = {"prompt_cache_breakpoint": "prompt_cache_options"}.get(parameter or "", parameter)
        if optional in ("store", "prompt_cache_options") and optional not in self.without:
            return replace(self, without=(*self.without, optional))
        return None


def request_body(prompter: Prompter, prompt: Prompt, capabilities: Capabilities, output: int) -> dict[str, Any]:
    """The JSON body of a chat completion request for at most `output` tokens."""
    schema = prompt.schema.json_schema(list(prompt.slots))
    user = prompt.user
    if capabilities.mode != "json_schema":
        user += f"\n\nAnswer with one JSON object that fits this schema, and nothing else:\n{json.dumps(schema)}"
    content: Any = f"{prompt.document}\n\n{user}" if prompt.document else user
    optional = sampling(prompter)
    if urlsplit(prompter.endpoint).hostname == "api.openai.com":
        # Texts that are sent only once must not be written to the server's cache, which costs 25 % more.
        optional |= {"store": False, "prompt_cache_options": {"mode": "explicit"}}
        if prompt.document and "prompt_cache_options" not in capabilities.without:
            head = {"type": "text", "text": prompt.document, "prompt_cache_breakpoint": {"mode": "explicit"}}
            content = [head, {"type": "text", "text": user}]
    if capabilities.mode == "json_schema":
        answer = {"name": "answer", "strict": True, "schema": schema}
        optional["response_format"] = {"type": "json_schema", "json_schema": answer}
    elif capabilities.mode == "json_object":
        optional["response_format"] = {"type": "json_object"}
    return {
        "model": prompter.model,
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": content}],
        capabilities.limit: output,
        **{name: value for name, value in optional.items() if name not in capabilities.without},
    }


def sampling(prompter: Prompter) -> dict[str, Any]:
    """The sampling settings that the user chose; they are always sent."""
    chosen = {"temperature": prompter.temperature, "seed": prompter.seed, "reasoning_effort": prompter.reasoning_effort}
    return {name: value for name, value in chosen.items() if value is not None}


def output_limit(prompter: Prompter, prompt: Prompt, stretch: float = 1) -> int:
    """The token limit of an answer: four times the expected length plus 200, times `stretch`, plus reasoning tokens."""
    return min(_LONGEST, math.ceil((4 * prompt.output + 200) * stretch)) + _REASONING[prompter.reasoning_effort]


def prompt_bytes(prompt: Prompt) -> int:
    """The size of a prompt in bytes, including its schema and an allowance for framing."""
    texts = (prompt.system, prompt.document, prompt.user, json.dumps(prompt.schema.json_schema(list(prompt.slots))))
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + FRAME
