"""Something that asks a model: its settings, what it asks about, and how an answer is read."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from harness.core.secrecy import address_fault, bare_address, holds_credentials
from harness.llm.answer_schema import AnswerSchema, Choice, Entry
from harness.llm.answers import GREATEST_GRADE, Outcome
from harness.storage.digest import digest

_OPENAI = "https://api.openai.com/v1"

Effort = Literal["none", "minimal", "low", "medium", "high"]


def _quick(default: Any) -> Any:
    """A setting that changes only speed or cost."""
    return field(default=default, metadata={"runtime": True}, kw_only=True)


class Task(NamedTuple):
    """One thing to be answered: about texts, perhaps an item, asked for a query. Its content is its address.

    `take` numbers repeated answers to the same thing; each has its own place in the cache. `SWAPPED` asks once more
    with the slots in reverse order.
    """

    query: str
    texts: tuple[str, ...] = ()
    item: str = ""
    reference: str = ""
    take: int = 0


SWAPPED = -1


class Prompt(NamedTuple):
    """One call: the messages, the form of the answer, and the task each slot stands for.

    `document` is a long text that many calls share (`Prompter.shared`); it goes first, so that the server can cache it.
    `output` is the number of tokens an answer may be expected to take.
    """

    system: str
    user: str
    schema: AnswerSchema
    slots: Mapping[str, Task]
    document: str = ""
    output: int = 100


@dataclass(frozen=True)
class Prompter(ABC):
    """Base of judges and augmenters that ask an OpenAI-compatible server.

    `base_url` is the server, else OPENAI_BASE_URL, else OpenAI; the key comes from OPENAI_API_KEY. `timeout` is in
    seconds and covers one request from its first to its last byte; a server that refuses or fails all requests for
    `give_up_after` seconds is asked no more.
    """

    model: str
    base_url: str | None = field(default=None, kw_only=True)
    temperature: Annotated[float, Field(ge=0, le=2)] | None = field(default=None, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    reasoning_effort: Effort | None = field(default=None, kw_only=True)
    timeout: Annotated[float, Field(gt=0)] = _quick(120.0)
    give_up_after: Annotated[float, Field(gt=0)] = _quick(300.0)
    concurrency: Annotated[int, Field(gt=0, le=128)] = _quick(16)

    @property
    def server(self) -> str:
        """The address asked, as it is given."""
        return (self.base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI).rstrip("/")

    @property
    def endpoint(self) -> str:
        """The address without credentials, query and fragment: what answers are filed under."""
        return bare_address(self.server)

    def problem(self) -> str | None:
        """What is wrong with these settings taken together, or None."""
        if not self.model.strip():
            return "model is empty; name the model of the server, such as gpt-5.4-mini"
        fault = address_fault(self.server)
        if fault:
            return f"{'base_url' if self.base_url else 'OPENAI_BASE_URL'}: {fault}"
        if self.base_url and holds_credentials(self.base_url):
            return "base_url: holds a user, a password or a key, which would be logged; set OPENAI_API_KEY instead"
        return None

    def facts(self) -> dict[str, str]:
        """The server that the environment names is part of the identity where the settings name none."""
        return {"server": self.endpoint} if self.base_url is None and self.endpoint != _OPENAI else {}

    @abstractmethod
    def labelling(self) -> Mapping[str, Any]:
        """What decides an answer besides server, model, sampling and the task: above all the wording of the prompt."""

    def namespace(self) -> str:
        """What identifies the way of asking: server, model, sampling, wording, form."""
        # 0, 0.0 and -0.0 are one temperature.
        temperature = None if self.temperature is None else float(self.temperature) + 0.0
        sampling = (self.model, temperature, self.seed, self.reasoning_effort)
        return digest({"endpoint": self.endpoint, "sampling": sampling, "asking": dict(self.labelling())})

    def addresses(self, tasks: Sequence[Task]) -> list[str]:
        """Where the answers live in the cache; equal tasks put with equal words to the same model share one."""
        namespace = self.namespace()
        return [digest([namespace, *task]) for task in tasks]

    @abstractmethod
    def batches(self, tasks: Sequence[Task]) -> list[tuple[Task, ...]]:
        """The tasks of each call, in an order that depends on their content alone."""

    @property
    def greatest_grade(self) -> int:
        """The greatest grade a label can have: of the form's choices of numbers, else of any."""
        fields = self.prompt((self.sample(),)).schema.fields
        options = [option for _, field in fields if isinstance(field, Choice) for option in field.options]
        return max((option for option in options if isinstance(option, int)), default=GREATEST_GRADE)

    def sample(self) -> Task:
        """A thing that could be asked about: the prompt about it shows the wording and the form."""
        return Task("a query", ("a text",), "an item", "an answer")

    def shared(self, batch: Sequence[Task]) -> str:
        """The long text at the head of the call that others share; the first of them goes ahead of the others."""
        return ""

    @abstractmethod
    def prompt(self, batch: Sequence[Task]) -> Prompt:
        """The call that asks about these tasks."""

    @abstractmethod
    def read(self, task: Task, entry: Entry, prompt: Prompt) -> Outcome:
        """What an entry says about its task, checked against it."""
