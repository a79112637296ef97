"""Judges of what a trial selected: components of their own role, none of them built in yet."""

from harness.component import Component

BUILTINS: tuple[type[Component], ...] = ()

__all__ = ["BUILTINS"]
