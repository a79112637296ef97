"""How many queries a difference needs to be seen."""

import numpy as np

from harness.evaluation.stats.clusters import Floats

POWER = 0.8


def queries_needed(errors: Floats, queries: int, difference: float, *, critical: float, power: float = POWER) -> Floats:
    """Queries needed to tell a mean difference from none, of shape (trials,): rounded up; NaN where nothing varies.

    `errors` are the standard errors of the paired differences as they are, over `queries` queries; further queries are
    taken to be like these, with as many in a cluster. `critical` is the bound on the statistic, 1.96 for a single test
    at 5 %. (critical + z of the power)^2 times the variance, over the difference squared; Cohen, Statistical Power
    Analysis, 1988, section 2.4.
    """
    from scipy.special import ndtri

    varying = np.where(errors > 0, errors, np.nan)
    return np.asarray(np.ceil(queries * ((critical + float(ndtri(power))) * varying / difference) ** 2))
