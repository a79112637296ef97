"""Queries written by a language model, with evidence that is checked, for people to review."""

from harness.synthesis.generating import Generated, Plan, generate
from harness.synthesis.review import apply_sheet, write_sheet
from harness.synthesis.writer import KINDS, AnswerChecker, QueryWriter

__all__ = [
    "KINDS",
    "AnswerChecker",
    "Generated",
    "Plan",
    "QueryWriter",
    "apply_sheet",
    "generate",
    "write_sheet",
]
