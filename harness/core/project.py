"""The folder of a project, where results are kept whatever the working folder is."""

from pathlib import Path

RESULTS = (".harness", "mlflow.db")
"""What a project's folder holds once an experiment has run."""

_ROOTS = ("datasets", ".git", "pyproject.toml")
"""What marks the folder of a project before that."""


def project_folder(start: Path) -> Path:
    """The folder where the results of an experiment in the folder `start` are, or will be.

    That is the nearest folder with results, upward from `start` to the project's: the first with a folder `datasets`,
    with `.git` or with `pyproject.toml`, else the working folder if `start` is inside it, else `start` itself. If none
    has results, it is the project's.
    """
    start, working = start.resolve(), Path.cwd()
    upward = [start, *start.parents]
    root = next((folder for folder in upward if any((folder / name).exists() for name in _ROOTS)), None)
    if root is None or (working in root.parents and _has_results(working)):
        # Results of earlier versions are in the working folder, which may be above the project.
        root = working if working in upward else root or start
    candidates = upward[: upward.index(root) + 1]
    return next((folder for folder in candidates if _has_results(folder)), root)


def _has_results(folder: Path) -> bool:
    return any((folder / name).exists() for name in RESULTS)
