"""The base class of components that call a language model: settings, prompts and the reading of answers."""

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
    """A setting that affects only speed or cost, not the answers."""
    return field(default=default, metadata={"runtime": True}, kw_only=True)


class Task(NamedTuple):
    """One unit of work for a model: texts and perhaps an item or a reference, for a query.

    Its address in the cache is a hash of its content. `take` numbers repeated answers to the same task, each with its
    own address; the take `SWAPPED` repeats the task with the slots in reverse order.
    """

    query: str
    texts: tuple[str, ...] = ()
    item: str = ""
    reference: str = ""
    take: int = 0


SWAPPED = -1


class Prompt(NamedTuple):
    """One call: the messages, the answer schema and the task of each slot.

    `document` is a long text shared by many calls (`Prompter.shared`); it comes first so that the server can cache it.
    `output` is the expected number of tokens of the answer.
    """

    system: str
    user: str
    schema: AnswerSchema
    slots: Mapping[str, Task]
    document: str = ""
    output: int = 100


@dataclass(frozen=True)
class Prompter(ABC):
    """Base class of judges and augmenters that call an OpenAI-compatible server.

    `base_url` is the server, by default OPENAI_BASE_URL, else OpenAI; the key comes from OPENAI_API_KEY. `timeout` in
    seconds limits one request from its first to its last byte. After `give_up_after` seconds without an answer from a
    server, no more requests are sent to it. `concurrency` limits the requests in flight.
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
        """The address of the server as configured, without a trailing slash."""
        return (self.base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI).rstrip("/")

    @property
    def endpoint(self) -> str:
        """The address without credentials, query and fragment; part of the addresses of answers."""
        return bare_address(self.server)

    def problem(self) -> str | None:
        """Why these settings cannot be used, or None."""
        if not self.model.strip():
            return "model is empty; name the model of the server, such as gpt-5.4-mini"
        fault = address_fault(self.server)
        if fault:
            return f"{'base_url' if self.base_url else 'OPENAI_BASE_URL'}: {fault}"
        if self.base_url and holds_credentials(self.base_url):
            return "base_url: holds a user, a password or a key, which would be logged; set OPENAI_API_KEY instead"
        return None

    def facts(self) -> dict[str, str]:
        """Adds the server to the identity if it is set by the environment instead of the settings."""
        return {"server": self.endpoint} if self.base_url is None and self.endpoint != _OPENAI else {}

    @abstractmethod
    def labelling(self) -> Mapping[str, Any]:
        """What determines an answer besides server, model, sampling and task, above all the wording of the prompt."""

    def namespace(self) -> str:
        """A digest of everything but the task that determines an answer: server, model, sampling and `labelling`."""
        # 0, 0.0 and -0.0 are the same temperature.
        temperature = None if self.temperature is None else float(self.temperature) + 0.0
        sampling = (self.model, temperature, self.seed, self.reasoning_effort)
        return digest({"endpoint": self.endpoint, "sampling": sampling, "asking": dict(self.labelling())})

    def addresses(self, tasks: Sequence[Task]) -> list[str]:
        """The cache address of each task's answer; equal tasks in the same namespace share one."""
        namespace = self.namespace()
        return [digest([namespace, *task]) for task in tasks]

    @abstractmethod
    def batches(self, tasks: Sequence[Task]) -> list[tuple[Task, ...]]:
        """The tasks grouped by call, in an order that depends only on their content."""

    @property
    def greatest_grade(self) -> int:
        """The highest grade that the answer schema allows; GREATEST_GRADE if it has no integer choices."""
        fields = self.prompt((self.sample(),)).schema.fields
        options = [option for _, field in fields if isinstance(field, Choice) for option in field.options]
        return max((option for option in options if isinstance(option, int)), default=GREATEST_GRADE)

    def sample(self) -> Task:
        """An example task, used to obtain the wording of the prompt and the answer schema."""
        return Task("a query", ("a text",), "an item", "an answer")

    def shared(self, batch: Sequence[Task]) -> str:
        """The long document that this call shares with others, or "". The first such call is sent before the others."""
        return ""

    @abstractmethod
    def prompt(self, batch: Sequence[Task]) -> Prompt:
        """The prompt of one call for these tasks."""

    @abstractmethod
    def read(self, task: Task, entry: Entry, prompt: Prompt) -> Outcome:
        """The outcome of a task from its entry in the answer, after checking the entry against the task."""
