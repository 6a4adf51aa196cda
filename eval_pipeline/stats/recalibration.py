"""From judge scores to human scores: isotonic regression on levels, Brier score and calibration error.

Monotone, so it never improves rho; it removes the bias of the levels. Quality claims use the cross-fitted values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .counts import Floats, Numbers, PairTable, as_floats, as_pairs, complete, group_codes
from .quantiles import t_quantile
from .stat import Stat, Status, undefined


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A non-decreasing step from judge level to expected human score.

    Attributes:
        levels: Judge scores that occur, ascending (empty when undefined). fitted: E[human | judge] at each.
        counts: Labels behind each level.
        reason: `decreasing_data` with status `fallback` when the fit is one constant although the levels differ.
    """

    levels: tuple[float, ...]
    fitted: tuple[float, ...]
    counts: tuple[float, ...]
    n: int
    n_dropped: int
    status: Status
    reason: str | None

    def predict(self, judge: Numbers) -> Floats:
        """Expected human score; linear between levels, constant beyond them, NaN for a missing score."""
        if not self.levels:
            raise ValueError("An undefined recalibration predicts nothing.")
        scores = as_floats(judge)
        return np.where(np.isnan(scores), np.nan, np.interp(scores, self.levels, self.fitted))


def isotonic(judge: Numbers | PairTable, human: Numbers | None = None, *, minimum_per_level: int = 1) -> Isotonic:
    """Weighted isotonic regression of the human means on the judge's levels (ties in the judge are averaged first).

    Args:
        judge: Judge scores, or a `PairTable` (x judge, y human).
        human: Human scores.
        minimum_per_level: Levels with fewer labels are merged with a neighbour first; 10 for use, 1 for the plain fit.
    """
    from scipy.optimize import isotonic_regression

    table = as_pairs(judge, human)
    if table.n == 0:
        return Isotonic((), (), (), 0, table.n_dropped, "undefined", "n_zero")
    counts = table.x_counts
    used = counts > 0
    sums = np.bincount(table.x_index, weights=table.counts * table.y, minlength=len(table.x_levels))[used]
    levels, counts = table.x_levels[used], counts[used]
    block = _merge_small(counts, minimum_per_level)
    block_counts = np.bincount(block, weights=counts)
    means = np.bincount(block, weights=sums) / block_counts
    fitted = np.asarray(isotonic_regression(means, weights=block_counts).x)[block]
    flat = len(means) > 1 and bool(np.ptp(fitted) < 1e-12) and bool(np.ptp(means) > 1e-12)
    status, reason = ("fallback", "decreasing_data") if flat else ("ok", None)
    if not flat and float(counts.min()) < 10:
        status, reason = "low_precision", "few_labels_per_level"
    return Isotonic(
        tuple(levels.tolist()), tuple(fitted.tolist()), tuple(counts.tolist()), table.n, table.n_dropped, status, reason
    )  # type: ignore[arg-type]


def _merge_small(counts: Floats, minimum: int) -> np.ndarray:
    """Block of each level: neighbours joined upward until a block holds `minimum`; a small last one joins back."""
    block = np.zeros(len(counts), dtype=np.int64)
    current, held = 0, 0.0
    for position, count in enumerate(counts):
        if held >= minimum:
            current, held = current + 1, 0.0
        block[position] = current
        held += count
    if held < minimum and current > 0:
        block[block == current] = current - 1
    return block


def cross_fitted(
    judge: Numbers, human: Numbers, *, folds: int = 5, clusters: Sequence[Any] | None = None,
    minimum_per_level: int = 10, seed: int = 0,
) -> Floats:  # fmt: skip
    """Each row's recalibrated score from a fit on the other folds (folds by cluster); NaN where a side is missing."""
    j, h = as_floats(judge), as_floats(human)
    _, group = group_codes(range(len(j)) if clusters is None else clusters)
    fold_of = np.random.default_rng(seed).permutation(int(group.max(initial=-1)) + 1) % folds
    fold = fold_of[group] if len(j) else np.empty(0, dtype=np.int64)
    result = np.full(len(j), np.nan)
    complete_rows = ~(np.isnan(j) | np.isnan(h))
    for part in range(folds):
        held_out = (fold == part) & complete_rows
        fit = isotonic(
            j[(fold != part) & complete_rows], h[(fold != part) & complete_rows], minimum_per_level=minimum_per_level
        )
        if fit.levels and held_out.any():
            result[held_out] = fit.predict(j[held_out])
    return result


def brier_score(probability: Numbers, outcome: Numbers, level: float = 0.95) -> Stat:
    """mean (p - y)^2 with jackknife limits; for a mean the jackknife is the t interval."""
    (p, y), dropped = complete(probability, outcome)
    n = len(p)
    if n == 0:
        return undefined("brier_score", "n_zero", n_dropped=dropped)
    losses = (p - y) ** 2
    value = float(losses.mean())
    half = t_quantile((1 + level) / 2, n - 1) * float(losses.std(ddof=1)) / n**0.5 if n > 1 else None
    return Stat(
        name="brier_score", value=value, n=n, n_dropped=dropped, lower=None if half is None else max(0.0, value - half),
        upper=None if half is None else min(1.0, value + half), level=level, sided="two", method="jackknife",
        estimand="population", status="ok" if n >= 20 else "low_precision", reason=None if n >= 20 else "n_too_small",
    )  # fmt: skip


def expected_calibration_error(probability: Numbers | PairTable, outcome: Numbers | None = None) -> Stat:
    """sum over the native levels of share * |mean outcome - level|; biased upward at small n, never gated."""
    table = as_pairs(probability, outcome)
    if table.n == 0:
        return undefined("expected_calibration_error", "n_zero", n_dropped=table.n_dropped)
    sums = np.bincount(table.x_index, weights=table.counts * table.y, minlength=len(table.x_levels))
    value = float(np.abs(sums - table.x_counts * table.x_levels).sum()) / table.n
    return Stat(
        name="expected_calibration_error", value=value, n=table.n, n_dropped=table.n_dropped, method="native_levels",
        estimand="fixed_set", notes=("biased upward at small n",),
        details={"levels": table.x_levels, "n_per_level": table.x_counts},
    )  # fmt: skip
