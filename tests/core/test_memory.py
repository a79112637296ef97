"""What must be in memory as a whole is refused where it cannot be."""

import pytest

from harness.core import memory
from harness.core.errors import ConfigError
from harness.core.memory import machine_memory, require_memory


def test_more_than_half_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says how much, and what to do instead."""
    assert machine_memory() > 2**28
    monkeypatch.setattr(memory, "machine_memory", lambda: 4 * 2**30)
    require_memory("x", 2 * 2**30, "y")
    with pytest.raises(ConfigError) as error:
        require_memory("the retriever holds all vectors", 3 * 2**30, "use `lancedb`")
    expected = (
        "the retriever holds all vectors in memory, 3.0 GB, more than half of this machine's 4.0 GB; use `lancedb`"
    )
    assert str(error.value) == expected
