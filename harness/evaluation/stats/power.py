"""Power: how many queries are needed to detect a difference."""

import numpy as np

from harness.evaluation.stats.clusters import Floats

POWER = 0.8
_DRAWS = 10_000


def queries_needed(errors: Floats, queries: int, difference: float, *, critical: float, power: float = POWER) -> Floats:
    """Queries needed to detect a mean difference with the given power, (trials,): rounded up; NaN if nothing varies.

    `errors` are the standard errors of the observed paired differences over `queries` queries. Further queries are
    assumed to be like these, with as many per cluster. `critical` is the critical value with that many queries, in
    standard errors, not that with the few observed: 1.96 for a single test at 5 %, `normal_critical` for several. The
    formula is (critical + z of the power)^2 times the variance, over the squared difference (Cohen, Statistical Power
    Analysis, 1988, section 2.4).
    """
    from scipy.special import ndtri

    varying = np.where(errors > 0, errors, np.nan)
    return np.asarray(np.ceil(queries * ((critical + float(ndtri(power))) * varying / difference) ** 2))


def normal_critical(sums: Floats, sizes: Floats, *, seed: int, level: float = 0.95) -> float:
    """The two-sided critical value of simultaneous tests of several mean differences on many queries.

    It is the `level` quantile of the greatest of |Z|, where Z is normal with the correlations of the differences
    (Hothorn, Bretz & Westfall, Biometrical Journal 50, 2008, section 3). `sums` are the sums of differences by cluster,
    (trials, clusters), `sizes` the numbers of queries by cluster. Differences that do not vary are left out.
    """
    from scipy.special import ndtri

    residuals = sums - (sums.sum(axis=1, keepdims=True) / sizes.sum()) * sizes
    norms = np.sqrt((residuals**2).sum(axis=1))
    varying = norms > 1e-12 * np.maximum(1.0, np.abs(sums).sum(axis=1))
    single = float(ndtri((1 + level) / 2))
    if varying.sum() < 2:
        return single
    unit = residuals[varying] / norms[varying, None]
    values, vectors = np.linalg.eigh(unit @ unit.T)
    kept = values > 1e-10
    roots = vectors[:, kept] * np.sqrt(values[kept])
    drawn = np.random.default_rng(seed).standard_normal((_DRAWS, int(kept.sum()))) @ roots.T
    return max(single, float(np.quantile(np.abs(drawn).max(axis=1), level)))
