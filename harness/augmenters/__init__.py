"""Augmenters: one class per file, each giving chunks a context that is indexed and never credited."""

from harness.augmenters.heading import Heading
from harness.augmenters.none import NoContext

BUILTINS = (NoContext, Heading)

__all__ = ["BUILTINS", "Heading", "NoContext"]
