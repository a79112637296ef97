"""Power: how many queries are needed to detect a difference."""

import numpy as np

from harness.evaluation.stats.clusters import Floats

POWER = 0.8


def queries_needed(errors: Floats, queries: int, difference: float, *, critical: float, power: float = POWER) -> Floats:
    """Queries needed to detect a mean difference with the given power, (trials,): rounded up; NaN if nothing varies.

    `errors` are the standard errors of the observed paired differences over `queries` queries. Further queries are
    assumed to be like these, with as many per cluster. `critical` is the critical value of the statistic, 1.96 for a
    single test at 5 %. The formula is (critical + z of the power)^2 times the variance, over the squared difference
    (Cohen, Statistical Power Analysis, 1988, section 2.4).
    """
    from scipy.special import ndtri

    varying = np.where(errors > 0, errors, np.nan)
    return np.asarray(np.ceil(queries * ((critical + float(ndtri(power))) * varying / difference) ** 2))
