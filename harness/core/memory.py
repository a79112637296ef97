"""The memory of this machine and of this process; what cannot be in it is refused, with what to do instead."""

import contextlib
import ctypes
import os
from pathlib import Path

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


def resident_memory() -> int:
    """Return the bytes of memory that this process takes; 0 where the system does not report them."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def return_freed() -> None:
    """Return to the system what this process has freed, where the C library (glibc) keeps it for later."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
