"""The body of a request: the same prompt put in the way a server understands."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from harness.llm.prompter import Prompt, Prompter

MODES = ("json_schema", "json_object", "plain")
"""Ways to ask for a form, the strictest first."""

FRAME = 256
"""Bytes allowed for what a server wraps around messages, as tokens are counted against a budget."""

_THINKING = {None: 0, "none": 0, "minimal": 500, "low": 2000, "medium": 8000, "high": 16000}
_LONGEST = 8192
"""Tokens of an answer, thoughts apart, however often it was cut: what is longer never ends."""


@dataclass(frozen=True)
class Capabilities:
    """What a server takes for a model: the mode of asking, the name of the token limit, and what it does not know."""

    mode: str = MODES[0]
    limit: str = "max_completion_tokens"
    without: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: Mapping[str, Any]) -> "Capabilities":
        """From plain JSON values."""
        return cls(text["mode"], text["limit"], tuple(text["without"]))

    def plain(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    def refused(self, parameter: str | None) -> "Capabilities | None":
        """What is left after a server refused a parameter; None where there is no other way to ask."""
        if parameter == "response_format" and self.mode != MODES[-1]:
            return replace(self, mode=MODES[MODES.index(self.mode) + 1])
        if parameter == "max_completion_tokens" and self.limit == parameter:
            return replace(self, limit="max_tokens")
        optional = {"prompt_cache_breakpoint": "prompt_cache_options"}.get(parameter or "", parameter)
        if optional in ("store", "prompt_cache_options") and optional not in self.without:
            return replace(self, without=(*self.without, optional))
        return None


def request_body(prompter: Prompter, prompt: Prompt, capabilities: Capabilities, output: int) -> dict[str, Any]:
    """The JSON body that asks for at most `output` tokens."""
    schema = prompt.schema.json_schema(list(prompt.slots))
    user = prompt.user
    if capabilities.mode != "json_schema":
        user += f"\n\nAnswer with one JSON object that fits this schema, and nothing else:\n{json.dumps(schema)}"
    content: Any = f"{prompt.document}\n\n{user}" if prompt.document else user
    optional = sampling(prompter)
    if urlsplit(prompter.endpoint).hostname == "api.openai.com":
        # Texts that are sent once must not be written to the server's cache, which costs a quarter more.
        optional |= {"store": False, "prompt_cache_options": {"mode": "explicit"}}
        if prompt.document and "prompt_cache_options" not in capabilities.without:
            head = {"type": "text", "text": prompt.document, "prompt_cache_breakpoint": {"mode": "explicit"}}
            content = [head, {"type": "text", "text": user}]
    if capabilities.mode == "json_schema":
        schema = {"name": "answer", "strict": True, "schema": schema}
        optional["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif capabilities.mode == "json_object":
        optional["response_format"] = {"type": "json_object"}
    return {
        "model": prompter.model,
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": content}],
        capabilities.limit: output,
        **{name: value for name, value in optional.items() if name not in capabilities.without},
    }


def sampling(prompter: Prompter) -> dict[str, Any]:
    """The settings of sampling that the user has chosen; they are never dropped."""
    chosen = {"temperature": prompter.temperature, "seed": prompter.seed, "reasoning_effort": prompter.reasoning_effort}
    return {name: value for name, value in chosen.items() if value is not None}


def output_limit(prompter: Prompter, prompt: Prompt, stretch: float = 1) -> int:
    """The most tokens an answer may take: four times what is expected, more for models that think first."""
    return min(_LONGEST, math.ceil((4 * prompt.output + 200) * stretch)) + _THINKING[prompter.reasoning_effort]


def prompt_bytes(prompt: Prompt) -> int:
    """The size of a prompt as it is sent, its form included."""
    texts = (prompt.system, prompt.document, prompt.user, json.dumps(prompt.schema.json_schema(list(prompt.slots))))
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + FRAME
