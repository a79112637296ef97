"""Files of a few lines, as sources of imports."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_imports import Make


@pytest.fixture
def folder(tmp_path: Path) -> Make:
    """Writes files; what is not text or bytes becomes JSON."""

    def made(files: dict[str, Any]) -> Path:
        for name, content in files.items():
            path = tmp_path / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tmp_path / "source"

    return made
