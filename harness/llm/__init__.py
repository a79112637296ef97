"""Asking language models: what a judge or an augmenter needs to put questions and to read answers."""

from harness.llm.answer_cache import Archive
from harness.llm.answer_schema import Choice, Entry, Form, Listed, Text
from harness.llm.answers import Failure, Judgment, Label, Outcome, Written
from harness.llm.batching import Estimate, Panel, all_missing, estimate, missing, stored
from harness.llm.caller import Caller
from harness.llm.prices import Spend
from harness.llm.prompter import SWAPPED, Asking, Prompt, Task
from harness.llm.retry_policy import Patience
from harness.llm.untrusted_text import defused, fence, folded, nonce, suspicious

__all__ = [
    "SWAPPED",
    "Archive",
    "Asking",
    "Caller",
    "Choice",
    "Entry",
    "Estimate",
    "Failure",
    "Form",
    "Judgment",
    "Label",
    "Listed",
    "Outcome",
    "Panel",
    "Patience",
    "Prompt",
    "Spend",
    "Task",
    "Text",
    "Written",
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
