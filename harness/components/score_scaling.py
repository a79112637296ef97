"""Functions that rescale scores, each (n,) to (n,)."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def min_max(scores: Floats) -> Floats:
    """Min-max scaling, (s - min) / (max - min): the best is 1 and the worst 0; all 1 if all are equal.

    >>> min_max(np.array([3.0, 2.0, 1.0])).tolist(), min_max(np.array([2.0, 2.0])).tolist()
    ([1.0, 0.5, 0.0], [1.0, 1.0])
    """
    spread = np.ptp(scores) if len(scores) else 0.0
    return (scores - scores.min()) / spread if spread else np.ones(len(scores))


def z_scores(scores: Floats) -> Floats:
    """(s - mean) / population standard deviation; all 0 if all are equal."""
    spread = scores.std() if np.ptp(scores) else 0.0
    return (scores - scores.mean()) / spread if spread else np.zeros(len(scores))


def rank_scores(scores: Floats) -> Floats:
    """1 - (rank - 1) / n: the best is 1, the worst of n distinct scores 1 / n; ties share the better rank."""
    better = (scores[None, :] > scores[:, None]).sum(axis=1)
    shares: Floats = 1 - better / max(1, len(scores))
    return shares
