"""Embedders: one class per file, each turning texts into vectors."""

from harness.components.embedders.api import Api
from harness.components.embedders.hashing import Hashing
from harness.components.embedders.local import Local

BUILTINS = (Local, Hashing, Api)

__all__ = ["BUILTINS", "Api", "Hashing", "Local"]
