"""Chunkers: one class per file, each cutting a document into spans."""

from harness.chunkers.fixed import Fixed
from harness.chunkers.paragraph import Paragraph
from harness.chunkers.recursive import Recursive
from harness.chunkers.sentence import Sentence

BUILTINS = (Fixed, Sentence, Paragraph, Recursive)

__all__ = ["BUILTINS", "Fixed", "Paragraph", "Recursive", "Sentence"]
