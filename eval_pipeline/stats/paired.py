"""Sizes of a paired change: Bonett-Price interval, McNemar, equivalence, what a set can detect, how noisy a judge is.

Permutation p values are in `permutation`; what counts as a regression is in `regression_rule`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .counts import Counts, Numbers, PairTable, Sample, as_counts, as_floats, as_pairs
from .quantiles import binomial_cdf, normal_cdf, normal_quantile, t_cdf, t_quantile, tail_probability
from .stat import Sided, Stat, undefined


def _differences(old: Sample | PairTable, new: Numbers | None) -> Counts:
    if isinstance(old, PairTable):
        return old.differences()
    if new is None:
        return as_counts(old)
    return as_pairs(old, new).differences()  # type: ignore[arg-type]


def _pseudo(differences: Counts, span: float) -> tuple[float, float]:
    """Mean and standard error after adding one difference of +span and one of -span (Bonett & Price 2012)."""
    extended = differences.with_value(span).with_value(-span)
    return extended.mean, math.sqrt(extended.variance / extended.n)


def paired_difference(
    old: Sample | PairTable,
    new: Numbers | None = None,
    level: float = 0.95,
    *,
    sided: Sided = "two",
    span: float = 1.0,
    name: str = "mean_difference",
) -> Stat:
    """mean(new - old) with the Bonett-Price (2012) interval, extended from 0/1 to [-span, span].

    With `new` left out, `old` is taken as the differences. When no case changed the interval stays open; a t interval
    would be [0, 0]. `details.centre` is the middle of the interval, `details.se` its standard error.
    """
    differences = _differences(old, new)
    n = differences.n
    if n == 0:
        return undefined(name, "n_zero", n_dropped=differences.n_dropped)
    centre, se = _pseudo(differences, span)
    half = normal_quantile(tail_probability(level, sided)) * se
    changed = np.abs(differences.levels) > 1e-12
    sd = math.sqrt(differences.variance * n / (n - 1)) if n > 1 else 0.0
    return Stat(
        name=name, value=differences.mean, n=n, n_dropped=differences.n_dropped,
        lower=min(max(-span, centre - half), differences.mean), upper=max(min(span, centre + half), differences.mean),
        level=level, sided=sided, method="bonett_price", estimand="population",
        notes=() if changed.any() else ("no case changed",),
        details={
            "centre": centre, "se": se, "sd": sd, "n_up": float(differences.counts[differences.levels > 1e-12].sum()),
            "n_down": float(differences.counts[differences.levels < -1e-12].sum()),
        },
    )  # fmt: skip


def mcnemar(worse: int, better: int) -> Stat:
    """Exact McNemar test of a pass/fail metric; value = share of the discordant cases that got worse minus better.

    No discordant case: value 0 and p = 1, with n = 0 shown.
    """
    if worse < 0 or better < 0:
        raise ValueError(f"Counts cannot be negative: {worse}, {better}.")
    n = worse + better
    p = 1.0 if n == 0 else min(1.0, 2 * binomial_cdf(min(worse, better), n, 0.5))
    return Stat(
        name="mcnemar", value=(worse - better) / n if n else 0.0, n=n, p=p, method="exact_mcnemar",
        estimand="fixed_set", details={"n_discordant": n, "worse": worse, "better": better},
    )  # fmt: skip


def _tost(differences: Counts, margin: float, alpha: float, centre: float, se: float, df: int | None) -> Stat:
    def tail(x: float) -> float:
        return t_cdf(x, df) if df is not None else normal_cdf(x)

    p_lower, p_upper = tail(-(centre + margin) / se), tail((centre - margin) / se)
    half = (t_quantile(1 - alpha, df) if df is not None else normal_quantile(1 - alpha)) * se
    p = max(p_lower, p_upper)
    return Stat(
        name="equivalence", value=differences.mean, n=differences.n, n_dropped=differences.n_dropped, p=p,
        lower=min(centre - half, differences.mean), upper=max(centre + half, differences.mean), level=1 - 2 * alpha,
        sided="two", method="tost_t" if df is not None else "tost_bonett_price", estimand="population",
        details={"p_lower": p_lower, "p_upper": p_upper, "margin": margin, "is_equivalent": p < alpha, "se": se},
    )  # fmt: skip


def equivalence(old: Sample | PairTable, new: Numbers | None = None, margin: float = 0.03, alpha: float = 0.05) -> Stat:
    """Two one-sided tests (Schuirmann 1987) that |mean(new - old)| < margin, on the Bonett-Price interval.

    Equivalent means that the (1 - 2 alpha) interval lies inside (-margin, margin); p is never 0, also when no case
    changed.
    """
    differences = _differences(old, new)
    if differences.n == 0:
        return undefined("equivalence", "n_zero", n_dropped=differences.n_dropped)
    _check_margin(margin)
    centre, se = _pseudo(differences, 1.0)
    return _tost(differences, margin, alpha, centre, se, None)


def equivalence_t(
    old: Sample | PairTable, new: Numbers | None = None, margin: float = 0.03, alpha: float = 0.05
) -> Stat:
    """The textbook paired-t TOST, for comparison; differences without variance are undefined (`zero_variance`).

    Decisions use `equivalence`, which is defined there and never gives p = 0.
    """
    differences = _differences(old, new)
    n = differences.n
    if n < 2:
        return undefined("equivalence", "n_too_small" if n else "n_zero", n=n, n_dropped=differences.n_dropped)
    _check_margin(margin)
    variance = differences.variance * n / (n - 1)
    if variance < 1e-18:
        return undefined("equivalence", "zero_variance", n=n, n_dropped=differences.n_dropped)
    return _tost(differences, margin, alpha, differences.mean, math.sqrt(variance / n), n - 1)


def _check_margin(margin: float) -> None:
    if not margin > 0:
        raise ValueError(f"An equivalence margin is positive, not {margin}.")


def minimum_detectable_effect(sd: float, n: int, alpha: float = 0.05, power: float = 0.80) -> float:
    """Smallest mean drop that a one-sided test at `alpha` finds with `power`: (z_alpha + z_power) sd / sqrt(n)."""
    if n < 1 or sd < 0:
        raise ValueError(f"n must be positive and sd not negative: {n}, {sd}.")
    return (normal_quantile(1 - alpha) + normal_quantile(power)) * sd / math.sqrt(n)


def cases_to_detect(sd: float, effect: float, alpha: float = 0.05, power: float = 0.80) -> int:
    """Cases needed to find a mean drop of `effect`: the inverse of `minimum_detectable_effect`."""
    if not effect > 0 or sd < 0:
        raise ValueError(f"The effect must be positive and sd not negative: {effect}, {sd}.")
    return max(1, math.ceil(((normal_quantile(1 - alpha) + normal_quantile(power)) * sd / effect) ** 2))


def noise_floor(judgings: Sequence[Numbers]) -> Stat:
    """How much a judge differs from itself: one-way analysis of variance of repeated judgings of stored responses.

    Args:
        judgings: One row per repeat, the same cases in the same order (None = missing). Cases judged once are dropped.

    Returns:
        Standard deviation of the mean difference between two judgings of the whole set, sqrt(2 var_judge / n), with
        var_judge, var_case, the intra-class correlation, and the shares of cases and of pairs of repeats that differ.
    """
    name = "noise_floor"
    if len(judgings) < 2:
        return undefined(name, "n_too_small")
    scores = np.stack([as_floats(row) for row in judgings], axis=1)
    repeats = (~np.isnan(scores)).sum(axis=1)
    keep = repeats >= 2
    dropped = int(len(keep) - keep.sum())
    scores, repeats = scores[keep], repeats[keep].astype(np.float64)
    n = len(scores)
    if n < 2:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    total = float(repeats.sum())
    means = np.nansum(scores, axis=1) / repeats
    within = float(np.nansum((scores - means[:, None]) ** 2)) / (total - n)
    grand = float(np.nansum(scores)) / total
    between = float(repeats @ (means - grand) ** 2) / (n - 1)
    typical = (total - float(repeats @ repeats) / total) / (n - 1)
    case_variance = (between - within) / typical
    flips = np.nanmax(scores, axis=1) - np.nanmin(scores, axis=1) > 1e-12
    notes = () if case_variance >= 0 else ("the estimate of the case variance was negative and is shown as 0",)
    case_variance = max(0.0, case_variance)
    spread = case_variance + within
    return Stat(
        name=name, value=math.sqrt(2 * within / n), n=n, n_dropped=dropped, method="one_way_anova",
        estimand="fixed_set", notes=notes, status="ok" if n >= 100 else "low_precision",
        reason=None if n >= 100 else "n_too_small",
        details={
            "var_judge": within, "var_case": case_variance, "icc1": case_variance / spread if spread > 0 else None,
            "sd_rerun_difference": math.sqrt(2 * within / n), "flip_share": float(flips.mean()),
            "pairwise_flip_share": _pairwise_flips(scores), "mean_repeats": total / n,
        },
    )  # fmt: skip


def _pairwise_flips(scores: np.ndarray) -> float:
    differing = pairs = 0
    for first in range(scores.shape[1]):
        for second in range(first + 1, scores.shape[1]):
            gap = np.abs(scores[:, first] - scores[:, second])
            pairs += int((~np.isnan(gap)).sum())
            differing += int((gap > 1e-12).sum())
    return differing / pairs
