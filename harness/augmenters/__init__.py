"""Augmenters: one class per file, each giving chunks a context that is indexed and never credited."""

from harness.augmenters.heading import Heading
from harness.augmenters.neighbors import Neighbors
from harness.augmenters.none import NoContext
from harness.augmenters.questions import Questions
from harness.augmenters.situate import Situate
from harness.augmenters.summary import Summary

BUILTINS = (NoContext, Heading, Neighbors, Situate, Summary, Questions)

__all__ = ["BUILTINS", "Heading", "Neighbors", "NoContext", "Questions", "Situate", "Summary"]
