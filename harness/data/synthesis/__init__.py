"""Queries written by a language model, with verified evidence, for people to review."""

from harness.data.synthesis.generate import Generated, GenerationModels, Plan, generate
from harness.data.synthesis.prompts import KINDS, AnswerChecker, QueryWriter
from harness.data.synthesis.review import apply_sheet, write_sheet

__all__ = [
    "KINDS",
    "AnswerChecker",
    "Generated",
    "GenerationModels",
    "Plan",
    "QueryWriter",
    "apply_sheet",
    "generate",
    "write_sheet",
]
