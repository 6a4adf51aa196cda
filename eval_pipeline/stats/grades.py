"""Two grades to one score, what missing grades can hide, and whether they are missing at random.

Parsing a reply into a grade is elsewhere: here a grade that is not on the scale is invalid, never rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .counts import Floats, Numbers
from .means import mean_interval
from .stat import Stat, undefined

PairStatus = Literal["both", "single", "invalid"]


@dataclass(frozen=True, slots=True)
class DualScores:
    """Scores of dual-graded items, with the bounds that missing grades leave.

    Attributes:
        values: Score per item, NaN where both grades are invalid. `scores` gives None there.
        lower: The score with each missing grade 0. upper: with each missing grade 1.
        valid_count: Valid grades per item, 0 to 2.
        missing_first: Singles whose first grade is missing. missing_second: whose second is.
    """

    values: Floats
    lower: Floats
    upper: Floats
    valid_count: npt.NDArray[np.int64]
    missing_first: int
    missing_second: int

    @property
    def scores(self) -> list[float | None]:
        """Score per item, None where both grades are invalid."""
        return [None if math.isnan(value) else value for value in self.values.tolist()]

    @property
    def statuses(self) -> list[PairStatus]:
        """`both`, `single` or `invalid` per item."""
        words: tuple[PairStatus, ...] = ("invalid", "single", "both")
        return [words[count] for count in self.valid_count.tolist()]

    @property
    def invalid_count(self) -> int:
        """Items without any valid grade."""
        return int((self.valid_count == 0).sum())

    @property
    def missing_grade_share(self) -> float | None:
        """Share of grades, not of items, that are missing: the width of the bounds. None for no items."""
        n = len(self.valid_count)
        return (2 * n - int(self.valid_count.sum())) / (2 * n) if n else None

    def mean(self, level: float = 0.95) -> Stat:
        """Mean of the scored items, with the Manski bounds as `details.bounds`; all invalid is undefined."""
        stat = mean_interval(self.values, level)
        if not len(self.values):
            return stat
        details = {
            **stat.details, "bounds": [float(self.lower.mean()), float(self.upper.mean())],
            "missing_grade_share": self.missing_grade_share,
        }  # fmt: skip
        if stat.value is None:
            return undefined("mean", "all_invalid", n_dropped=stat.n_dropped, lower=0.0, upper=1.0, details=details)
        return Stat(
            name="mean", value=stat.value, n=stat.n, n_dropped=stat.n_dropped, lower=stat.lower, upper=stat.upper,
            level=level, sided="two", method=stat.method, status=stat.status, reason=stat.reason,
            estimand="population", assumptions=("missing grades are like the others",), details=details,
        )  # fmt: skip


def _valid_grades(grades: Sequence[Any] | npt.NDArray[Any], allowed: Floats) -> Floats:
    """Grades as floats, NaN for everything that is not exactly an allowed number (text, bool, inf, off-grid)."""
    if isinstance(grades, np.ndarray) and grades.dtype.kind in "fiu":
        numbers = grades.astype(np.float64)
    else:
        numbers = np.array(
            [
                float(grade)
                if isinstance(grade, (int, float, np.integer, np.floating)) and not isinstance(grade, (bool, np.bool_))
                else math.nan
                for grade in grades
            ],
            dtype=np.float64,
        )
    return np.where(np.isin(numbers, allowed), numbers, np.nan)


def combine_dual(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    allowed: Sequence[float],
) -> DualScores:
    """Score = mean of the valid grades / max(allowed). A grade outside `allowed` is invalid, never rounded.

    Args:
        first: Grades under the first prompt; None, text, booleans, NaN and off-scale numbers are invalid.
        second: Grades under the second prompt, same items.
        allowed: The scale, for example (0, 2, 4).
    """
    scale = np.asarray(allowed, dtype=np.float64)
    top = float(scale.max())
    if top <= 0 or float(scale.min()) < 0:
        raise ValueError(f"A scale has non-negative grades and a positive top, not {list(allowed)}.")
    if len(first) != len(second):
        raise ValueError(f"{len(first)} first but {len(second)} second grades.")
    a, b = _valid_grades(first, scale) / top, _valid_grades(second, scale) / top
    has_a, has_b = ~np.isnan(a), ~np.isnan(b)
    valid = has_a.astype(np.int64) + has_b
    total = np.where(has_a, a, 0.0) + np.where(has_b, b, 0.0)
    values = np.where(valid > 0, total / np.maximum(valid, 1), np.nan)
    return DualScores(
        values, total / 2, (total + 2 - valid) / 2, valid, int((~has_a & has_b).sum()), int((has_a & ~has_b).sum())
    )


def mean_bounds(lower: Numbers, upper: Numbers, level: float = 0.95) -> Stat:
    """Bounds on the mean with sampling error (Horowitz & Manski 2000).

    Args:
        lower: Score per item with every missing grade 0. upper: with every missing grade 1. None is not allowed.

    Returns:
        Value: the lower bound, the number a floor is checked on. `details.bounds`: both bounds. Limits: the lower limit
        of the mean of `lower` and the upper limit of the mean of `upper`.
    """
    low, high = mean_interval(lower, level), mean_interval(upper, level)
    if low.n_dropped or high.n_dropped:
        raise ValueError("Bounds are never missing: an item without a grade has the bounds 0 and 1.")
    if low.value is None or high.value is None:
        return undefined("mean_bounds", "n_zero")
    return Stat(
        name="mean_bounds", value=low.value, n=low.n, lower=low.lower, upper=high.upper, level=level, sided="two",
        method="horowitz_manski", estimand="population",
        details={"bounds": [low.value, high.value], "width": high.value - low.value},
    )  # fmt: skip


def difference_bounds(old: tuple[float, float], new: tuple[float, float]) -> tuple[float, float]:
    """Bounds on the change of a mean over the shared items: [L_new - U_old, U_new - L_old]."""
    return new[0] - old[1], new[1] - old[0]


def missing_at_random_test(
    first: Sequence[Any] | npt.NDArray[Any], second: Sequence[Any] | npt.NDArray[Any], allowed: Sequence[float],
    *, seed: int = 0, resamples: int = 9999,
) -> Stat:  # fmt: skip
    """Whether items with one missing grade are graded like the others, by the grade that is there.

    The grades of single items are compared with the same prompt's grades on items where both are valid, by permuting
    them within each prompt (multivariate hypergeometric draws of the level counts). Value: mean of single minus mean of
    both, in score units. A small p says the observed mean is biased: use the bounds. A large p proves nothing.
    """
    scale = np.unique(np.asarray(allowed, dtype=np.float64))
    top = float(scale.max())
    a, b = _valid_grades(first, scale), _valid_grades(second, scale)
    both = ~np.isnan(a) & ~np.isnan(b)
    rng = np.random.default_rng(seed)
    name, observed, drawn, singles, compared = "missing_at_random", 0.0, np.zeros(resamples), 0, 0
    for own, other in ((a, b), (b, a)):
        alone = ~np.isnan(own) & np.isnan(other)
        k, m = int(alone.sum()), int(both.sum())
        if k == 0 or m == 0:
            continue
        single_counts = np.array([(own[alone] == grade).sum() for grade in scale])
        pool = single_counts + np.array([(own[both] == grade).sum() for grade in scale])

        def shift(counts: Any, pool: Any = pool, k: int = k, m: int = m) -> Any:
            return counts @ scale - k * ((pool - counts) @ scale) / m

        observed += float(shift(single_counts))
        drawn += shift(rng.multivariate_hypergeometric(pool, k, size=resamples))
        singles, compared = singles + k, compared + m
    if singles == 0 or compared == 0:
        return undefined(name, "n_zero", n_dropped=int((np.isnan(a) & np.isnan(b)).sum()))
    p = (int((np.abs(drawn) >= abs(observed) - 1e-9).sum()) + 1) / (resamples + 1)
    return Stat(
        name=name, value=observed / singles / top, n=singles, n_dropped=int((np.isnan(a) & np.isnan(b)).sum()), p=p,
        method="monte_carlo_permutation", estimand="fixed_set", status="ok" if singles >= 10 else "low_precision",
        reason=None if singles >= 10 else "n_too_small",
        details={"seed": seed, "resamples": resamples, "bit_generator": "PCG64", "n_both": int(both.sum())},
    )  # fmt: skip


def invalid_by_group(invalid: Sequence[int], total: Sequence[int]) -> Stat:
    """Whether the invalid share differs between strata (or length terciles): Fisher for two groups, else chi-squared.

    Value: largest minus smallest share. Groups without items are left out; undefined with fewer than two, or when no
    item, or every item, is invalid.
    """
    from scipy.stats import chi2_contingency, fisher_exact

    bad, n = np.asarray(invalid, dtype=np.int64), np.asarray(total, dtype=np.int64)
    if (bad < 0).any() or (bad > n).any():
        raise ValueError("Invalid counts must lie between 0 and the totals.")
    bad, n = bad[n > 0], n[n > 0]
    name, everything = "invalid_share_by_group", int(n.sum())
    if len(n) < 2:
        return undefined(name, "fewer_than_two_strata", n=everything)
    if bad.sum() in (0, everything):
        return undefined(name, "no_variation", n=everything)
    table = np.stack([bad, n - bad])
    exact = len(n) == 2
    result: Any = fisher_exact(table) if exact else chi2_contingency(table, correction=False)
    return Stat(
        name=name, value=float(np.ptp(bad / n)), n=everything, p=min(1.0, float(result.pvalue)),
        method="fisher_exact" if exact else "chi_squared", estimand="fixed_set",
        details={"shares": bad / n},
    )  # fmt: skip
