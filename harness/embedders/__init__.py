"""Embedders: one class per file, each turning texts into vectors."""

from harness.embedders.api import Api
from harness.embedders.hashing import Hashing
from harness.embedders.local import Local

BUILTINS = (Local, Hashing, Api)

__all__ = ["BUILTINS", "Api", "Hashing", "Local"]
