"""Language model calls for judges and augmenters: prompts, answer schemas, the answer cache, batches and cost."""

from harness.llm.answer_cache import AnswerCache
from harness.llm.answer_schema import AnswerSchema, Choice, Entry, ListOf, Text
from harness.llm.answers import Completion, Failure, Judgment, Label, Outcome
from harness.llm.batching import BatchRunner, Estimate, all_missing, estimate, missing, stored
from harness.llm.caller import Caller
from harness.llm.prices import Spend
from harness.llm.prompter import SWAPPED, Prompt, Prompter, Task
from harness.llm.retry_policy import RetryPolicy
from harness.llm.untrusted_text import defused, fence, folded, nonce, suspicious

__all__ = [
    "SWAPPED",
    "AnswerCache",
    "AnswerSchema",
    "BatchRunner",
    "Caller",
    "Choice",
    "Completion",
    "Entry",
    "Estimate",
    "Failure",
    "Judgment",
    "Label",
    "ListOf",
    "Outcome",
    "Prompt",
    "Prompter",
    "RetryPolicy",
    "Spend",
    "Task",
    "Text",
    "all_missing",
    "defused",
    "estimate",
    "fence",
    "folded",
    "missing",
    "nonce",
    "stored",
    "suspicious",
]
