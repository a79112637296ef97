"""Where results come from: the user, the git commit of the working folder, and the versions of packages."""

import contextlib
import getpass
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

_DECIDING = (
    *("retrieval-harness", "numpy", "scipy", "PyStemmer", "faiss-cpu", "nltk", "tiktoken", "tokenizers"),
    *("torch", "transformers", "sentence-transformers"),
)
"""Packages whose version may change a number."""
_OTHERS = ("openai", "mlflow", "matplotlib")


class Environment(NamedTuple):
    """The version of the harness, the user's name and the git commit of the working folder; empty if not known."""

    version: str
    user: str
    commit: str


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment of this process."""
    user = commit = ""
    with contextlib.suppress(OSError, KeyError):  # a container may run as a user without a name, or without git
        user = getpass.getuser()
    with contextlib.suppress(OSError):
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        commit = found.stdout.strip() if found.returncode == 0 else ""
    return Environment(version("retrieval-harness"), user, commit)


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that results come from, if they are installed."""
    return _versions((*_DECIDING, *_OTHERS))


def deciding_versions() -> dict[str, str]:
    """Return the versions of the packages that may change a number, if they are installed."""
    return _versions(_DECIDING)


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
