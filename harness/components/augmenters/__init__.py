"""Augmenters: one class per file, each adding a context to chunks that is indexed but never counted as evidence."""

from harness.components.augmenters.heading import Heading
from harness.components.augmenters.neighbors import Neighbors
from harness.components.augmenters.none import NoContext
from harness.components.augmenters.questions import Questions
from harness.components.augmenters.situate import Situate
from harness.components.augmenters.summary import Summary

BUILTINS = (NoContext, Heading, Neighbors, Situate, Summary, Questions)

__all__ = ["BUILTINS", "Heading", "Neighbors", "NoContext", "Questions", "Situate", "Summary"]
