"""Tags of an experiment: what trackers write themselves cannot be set."""

import re
from collections.abc import Mapping
from typing import Any

from harness.core.errors import ConfigError
from harness.experiment.params import param_text

RESERVED = frozenset(
    (
        *("kind", "launch", "fingerprint", "final", "dataset_digest", "synthetic", "partial", "trials", "top_trial"),
        *("test_set_accesses", "compared_on", "baseline", "may_be_best", "gate", "trial", "harness_version"),
        *("traces", "process", "gate_worse", "gate_changed"),
    )
)
"""Tags that trackers write themselves."""

_NAME = re.compile(r"[\w./ -]{1,250}")


def checked_tags(tags: Mapping[str, Any], where: str) -> dict[str, str]:
    """The tags, their values as text. Raises ConfigError, beginning with `where`, for a name that is not allowed."""
    for name, value in tags.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"{where}: {name!r:.60}: expected a name of letters, digits, spaces and any of _ - . /")
        if name in RESERVED or name.startswith("mlflow."):
            raise ConfigError(f"{where}: '{name}' is a tag that the harness or MLflow writes; choose another name")
        if not isinstance(value, str | int | float) or len(str(value)) > 5000:
            raise ConfigError(f"{where}: {name}: expected a text of at most 5,000 characters, got {value!r:.60}")
    return {name: param_text(value) for name, value in tags.items()}
