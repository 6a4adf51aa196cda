"""Agreement of judges with each other: exact share, weighted kappa, Gwet's AC2, Krippendorff's alpha, order swap.

Two grades of one model under two prompts are parallel forms: this is self-consistency, never agreement with truth.
Rank correlation with people is in `correlation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .correlation import adversarial_pair, association
from .counts import Floats, Numbers, PairTable, as_floats, as_pairs
from .paired import paired_difference
from .permutation import sign_flip
from .quantiles import t_quantile, tail_probability
from .rates import wilson
from .stat import Sided, Stat, undefined

PREVALENCE_WARNING = 0.85


def exact_agreement(a: Numbers | PairTable, b: Numbers | None = None, level: float = 0.95) -> Stat:
    """Share of pairs that are equal, with a Wilson interval."""
    table = as_pairs(a, b)
    equal = float(table.counts[table.x == table.y].sum())
    stat = wilson(equal, table.n, level, name="exact_agreement")
    return Stat(
        name=stat.name, value=stat.value, n=table.n, n_dropped=table.n_dropped, lower=stat.lower, upper=stat.upper,
        level=stat.level, sided=stat.sided, method=stat.method, status=stat.status, reason=stat.reason,
        estimand="population", details={"k": equal},
    )  # fmt: skip


def _kappa(n: Floats, a: Floats, b: Floats, aa: Floats, bb: Floats, ab: Floats) -> Floats:
    """2 cov / (var a + var b + (mean a - mean b)^2) from sums; NaN where both columns are one constant."""
    covariance = ab / n - a * b / n**2
    spread = aa / n + bb / n - 2 * a * b / n**2
    return np.where(spread > 1e-12, 2 * covariance / np.where(spread > 1e-12, spread, 1.0), np.nan)


def _sums(table: PairTable) -> tuple[Floats, Floats, float]:
    """Grades of each cell, centred (sums of squares then lose no digits), and n."""
    middle = (table.x_levels.mean() + table.y_levels.mean()) / 2
    return table.x - middle, table.y - middle, float(table.counts.sum())


def quadratic_weighted_kappa_value(table: PairTable) -> float | None:
    """Quadratic weighted kappa by the distances of the grades themselves; None where only one grade occurs."""
    x, y, n = _sums(table)
    w = table.counts
    value = float(_kappa(np.array(n), w @ x, w @ y, w @ x**2, w @ y**2, w @ (x * y)))
    return None if math.isnan(value) else value


def quadratic_weighted_kappa_leave_one_out(table: PairTable) -> Floats:
    """Kappa without one pair of each cell."""
    x, y, n = _sums(table)
    w = table.counts
    return _kappa(
        np.array(n - 1), w @ x - x, w @ y - y, w @ x**2 - x**2, w @ y**2 - y**2, w @ (x * y) - x * y
    )  # fmt: skip


def quadratic_weighted_kappa(
    a: Numbers | PairTable,
    b: Numbers | None = None,
    level: float = 0.95,
    *,
    sided: Sided = "two",
    clusters: Sequence[Any] | None = None,
) -> Stat:
    """Quadratic weighted kappa, the same number as Lin's concordance coefficient (Fleiss & Cohen 1973; Lin 1989).

    Distances are those of the grades, not of their index: an unused level changes nothing, and a three-level person can
    be compared with a five-level judge. One grade only is undefined (`no_variation`) although agreement is 1.
    Limits by the jackknife on Fisher's z.
    """
    table = as_pairs(a, b)
    return association(
        "quadratic_weighted_kappa", table, quadratic_weighted_kappa_value, quadratic_weighted_kappa_leave_one_out,
        level=level, sided=sided, clusters=clusters, constant_reason="no_variation",
    )  # fmt: skip


def gwet_ac2(
    a: Numbers | PairTable, b: Numbers | None = None, *, levels: Sequence[float] | None = None, level: float = 0.95
) -> Stat:
    """Gwet's AC2 with quadratic weights (Gwet 2008), linearised standard error, t(n-1); the upper limit is at most 1.

    One grade only is undefined (`no_variation`), as for kappa. Perfect agreement has no standard error: its limits are
    those with one pair of the two extreme grades added (`fallback`).

    Args:
        levels: The scale. AC2 depends on how many levels it has; without it the grades that occur are taken.
        a: One column or a `PairTable`. b: the other column. level: of the limits.
    """
    table = as_pairs(a, b)
    name, n = "gwet_ac2", table.n
    if n < 2:
        return undefined(name, "n_too_small", n=n, n_dropped=table.n_dropped)
    scale = np.unique(as_floats(levels) if levels is not None else np.concatenate([table.x_levels, table.y_levels]))
    position_a, position_b = (np.searchsorted(scale, grades).clip(max=len(scale) - 1) for grades in (table.x, table.y))
    if (scale[position_a] != table.x).any() or (scale[position_b] != table.y).any():
        raise ValueError(f"{name}: a grade is not on the scale {scale.tolist()}.")
    q = len(scale)
    if len(np.union1d(table.x, table.y)) < 2:
        return undefined(name, "no_variation", n=n, n_dropped=table.n_dropped)
    weights = 1 - ((scale[:, None] - scale[None, :]) / (scale[-1] - scale[0])) ** 2
    share = (
        np.bincount(position_a, weights=table.counts, minlength=q)
        + np.bincount(position_b, weights=table.counts, minlength=q)
    ) / (2 * n)
    chance_factor = float(weights.sum()) / (q * (q - 1))
    pe = chance_factor * float(share @ (1 - share))
    agree = weights[position_a, position_b]
    pa = float(table.counts @ agree) / n
    value = (pa - pe) / (1 - pe)
    own_pe = chance_factor * ((1 - share)[position_a] + (1 - share)[position_b]) / 2
    influence = (agree - pe) / (1 - pe) - 2 * (1 - value) * (own_pe - pe) / (1 - pe)
    se = math.sqrt(float(table.counts @ (influence - value) ** 2) / (n * (n - 1)))
    half = t_quantile(tail_probability(level, "two"), n - 1) * se
    if bool((agree >= 1).all()):
        worse = gwet_ac2(adversarial_pair(table, 1.0), levels=scale.tolist(), level=level)
        return Stat(
            name=name, value=value, n=n, n_dropped=table.n_dropped, lower=worse.lower, upper=1.0, level=level,
            sided="two", method="gwet_linearised", estimand="population", status="fallback",
            reason="perfect_association", details={"pa": pa, "pe": pe, "level_count": q},
        )  # fmt: skip
    return Stat(
        name=name, value=value, n=n, n_dropped=table.n_dropped, lower=min(value, max(-1.0, value - half)),
        upper=min(1.0, value + half),
        level=level, sided="two", method="gwet_linearised", estimand="population",
        status="ok" if n >= 20 else "low_precision", reason=None if n >= 20 else "n_too_small",
        details={"se": se, "pa": pa, "pe": pe, "level_count": q},
    )  # fmt: skip


def krippendorff_alpha_ordinal(ratings: Sequence[Numbers]) -> Stat:
    """Krippendorff's alpha with the ordinal distance, for any number of judges and missing ratings.

    Args:
        ratings: One row per judge, one column per item, None = missing. Items with one rating are not pairable.

    Returns:
        alpha; n is the number of pairable items. Undefined: `n_too_small` or `no_variation`.
    """
    table = np.array([as_floats(row) for row in ratings])
    name = "krippendorff_alpha_ordinal"
    per_item = (~np.isnan(table)).sum(axis=0)
    pairable = per_item >= 2
    items, dropped = int(pairable.sum()), int((~pairable).sum())
    if items < 2:
        return undefined(name, "n_too_small", n=items, n_dropped=dropped)
    used, multiplicity = table[:, pairable], per_item[pairable]
    levels = np.unique(used[~np.isnan(used)])
    if len(levels) < 2:
        return undefined(name, "no_variation", n=items, n_dropped=dropped)
    counts = np.array([(used == value).sum(axis=0) for value in levels], dtype=np.float64)
    scaled = counts / (multiplicity - 1)
    coincidence = scaled @ counts.T - np.diag(scaled.sum(axis=1))
    totals = coincidence.sum(axis=1)
    middle = np.cumsum(totals) - totals / 2
    distance = (middle[:, None] - middle[None, :]) ** 2
    n = float(totals.sum())
    expected = float((np.outer(totals, totals) * distance).sum())
    alpha = 1 - (n - 1) * float((coincidence * distance).sum()) / expected
    return Stat(
        name=name, value=alpha, n=items, n_dropped=dropped, method="krippendorff_2011", estimand="population",
        status="ok" if items >= 20 else "low_precision", reason=None if items >= 20 else "n_too_small",
        details={"ratings": n},
    )  # fmt: skip


def spearman_brown(reliability: float) -> float:
    """Reliability of the mean of two grades, 2r / (1 + r): an upper bound when the errors of the prompts correlate."""
    if not -1 < reliability <= 1:
        raise ValueError(f"A reliability lies in (-1, 1], not {reliability}.")
    return 2 * reliability / (1 + reliability)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The three agreement numbers that are only read together, and the order-swap test."""

    exact: Stat
    kappa: Stat
    ac2: Stat
    order_swap: Stat
    order_shift: Stat
    modal_share: float | None
    warnings: tuple[str, ...]
    mean_reliability: float | None
    """Spearman-Brown of kappa; an upper bound."""


def dual_agreement(
    first: Numbers | PairTable, second: Numbers | None = None, *, levels: Sequence[float], level: float = 0.95
) -> Agreement:
    """Everything about two grades of the same items.

    The order-swap test is the exact sign-flip test on second - first; it detects a difference between the prompts and
    cannot name the cause. Grades are scaled by the largest level for the shift, which is in score units.
    """
    table = as_pairs(first, second)
    kappa = quadratic_weighted_kappa(table, level=level)
    top = max(abs(value) for value in levels) or 1.0
    scaled = PairTable(
        table.x_levels / top, table.y_levels / top, table.x_index, table.y_index, table.counts, table.n_dropped
    )
    modal = _modal_share(table) if table.n else None
    warnings = ()
    if modal is not None and modal > PREVALENCE_WARNING:
        warnings = (f"{modal:.0%} of the grades are one level: kappa is low by construction, read it with AC2.",)
    return Agreement(
        exact=exact_agreement(table, level=level), kappa=kappa, ac2=gwet_ac2(table, levels=levels, level=level),
        order_swap=sign_flip(scaled, name="order_swap"), order_shift=paired_difference(scaled, level=0.90),
        modal_share=modal, warnings=warnings,
        mean_reliability=spearman_brown(kappa.value) if kappa.value is not None and kappa.value > -1 else None,
    )  # fmt: skip


def _modal_share(table: PairTable) -> float:
    grades = np.concatenate([table.x_levels, table.y_levels])
    _, index = np.unique(grades, return_inverse=True)
    pooled = np.bincount(index.ravel(), weights=np.concatenate([table.x_counts, table.y_counts]))
    return float(pooled.max() / pooled.sum())
