"""Augmenters: one class per file, each giving chunks a context that is indexed and never credited."""

from harness.components.augmenters.heading import Heading
from harness.components.augmenters.neighbors import Neighbors
from harness.components.augmenters.none import NoContext
from harness.components.augmenters.questions import Questions
from harness.components.augmenters.situate import Situate
from harness.components.augmenters.summary import Summary

BUILTINS = (NoContext, Heading, Neighbors, Situate, Summary, Questions)

__all__ = ["BUILTINS", "Heading", "Neighbors", "NoContext", "Questions", "Situate", "Summary"]
