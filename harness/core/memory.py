"""What must be in memory as a whole is refused beyond half of this machine's memory, with what to do instead."""

import os

from harness.core.errors import ConfigError

SHARE = 0.5
"""The fraction of the machine's memory that one thing may take."""


def require_memory(what: str, needed: int, instead: str) -> None:
    """Raise ConfigError, in one line, if `what` needs more bytes in memory than this machine can give it."""
    available = machine_memory()
    if needed > SHARE * available:
        sizes = f"{needed / 2**30:.1f} GB, more than half of this machine's {available / 2**30:.1f} GB"
        raise ConfigError(f"{what} in memory, {sizes}; {instead}")


def machine_memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
