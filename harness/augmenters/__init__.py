"""Augmenters: one class per file, each giving chunks a context that is indexed and never credited."""

from harness.augmenters.heading import Heading
from harness.augmenters.none import NoContext
from harness.augmenters.situate import Situate
from harness.augmenters.summary import Summary

BUILTINS = (NoContext, Heading, Situate, Summary)

__all__ = ["BUILTINS", "Heading", "NoContext", "Situate", "Summary"]
