"""Asking language models: what a judge or an augmenter needs to put questions and to read answers."""

from harness.llm.archive import Archive
from harness.llm.asking import SWAPPED, Asking, Prompt, Task
from harness.llm.caller import Caller
from harness.llm.fences import defused, fence, folded, nonce, suspicious
from harness.llm.form import Choice, Entry, Form, Listed, Text
from harness.llm.outcome import Failure, Judgment, Label, Outcome, Written
from harness.llm.panel import Estimate, Panel, all_missing, estimate, missing, stored
from harness.llm.patience import Patience
from harness.llm.prices import Spend
from harness.llm.verdict import Finding, Score, Verdict, average_precision, share

__all__ = [
    "SWAPPED",
    "Archive",
    "Asking",
    "Caller",
    "Choice",
    "Entry",
    "Estimate",
    "Failure",
    "Finding",
    "Form",
    "Judgment",
    "Label",
    "Listed",
    "Outcome",
    "Panel",
    "Patience",
    "Prompt",
    "Score",
    "Spend",
    "Task",
    "Text",
    "Verdict",
    "Written",
    "all_missing",
    "average_precision",
    "defused",
    "estimate",
    "fence",
    "folded",
    "missing",
    "nonce",
    "share",
    "stored",
    "suspicious",
]
