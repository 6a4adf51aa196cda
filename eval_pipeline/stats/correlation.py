"""Rank correlation of two columns: Spearman's rho and Kendall's tau-b with their intervals.

Correlation given a third column is in `partial_correlation`, ceilings and sample sizes in `ceilings`, the certification
rule in `calibration_rule`, agreement in `agreement`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .concordance import concordance
from .counts import Floats, Numbers, PairTable, as_pairs, complete, weighted_counts
from .jackknife import ZInterval, bonett_wright, jackknife_interval, without_each_cluster, z_standard_error
from .quantiles import t_cdf, t_quantile, tail_probability
from .stat import Sided, Stat, Status, undefined

_LOW_N = 20


def centred_midranks(counts: Floats) -> Floats:
    """Mid-rank of each level minus the mean rank."""
    return np.cumsum(counts) - counts / 2 - counts.sum() / 2


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """numerator / sqrt(denominator), NaN where the denominator vanishes."""
    safe = np.where(denominator > 1e-9, denominator, np.nan)
    return np.clip(numerator / np.sqrt(safe), -1.0, 1.0)


def spearman_value(table: PairTable) -> float | None:
    """Pearson correlation of mid-ranks; None where a column is constant."""
    r, s = centred_midranks(table.x_counts)[table.x_index], centred_midranks(table.y_counts)[table.y_index]
    sxx, syy = float(table.counts @ r**2), float(table.counts @ s**2)
    if sxx <= 1e-9 or syy <= 1e-9:
        return None
    return max(-1.0, min(1.0, float(table.counts @ (r * s)) / math.sqrt(sxx) / math.sqrt(syy)))


def spearman_leave_one_out(table: PairTable) -> Floats:
    """rho without one pair of each cell (NaN where that makes a column constant).

    Removing pair k lowers the centred mid-rank of pair i by sign(x_i - x_k) / 2, so all sums follow from the marginal
    rank sums above and below k and from Kendall's score of k.
    """
    relation = concordance(table)
    n, counts = table.counts.sum(), table.counts
    x_rank, y_rank = centred_midranks(table.x_counts), centred_midranks(table.y_counts)
    r, s = x_rank[table.x_index], y_rank[table.y_index]

    def signed_sum(values: Floats, index: np.ndarray, size: int) -> Floats:
        """Sum of values at higher levels minus sum at lower levels, for each cell."""
        by_level = weighted_counts(index, counts * values, size)
        through = np.cumsum(by_level)
        return (through[-1] - through - (through - by_level))[index]

    nx, ny = len(table.x_levels), len(table.y_levels)
    sxy = counts @ (r * s) - r * s + relation.score / 4
    sxy -= (signed_sum(r, table.y_index, ny) + signed_sum(s, table.x_index, nx)) / 2
    sxx = counts @ r**2 - r**2 - signed_sum(r, table.x_index, nx) + (n - relation.tied_x) / 4
    syy = counts @ s**2 - s**2 - signed_sum(s, table.y_index, ny) + (n - relation.tied_y) / 4
    return ratio(sxy, np.maximum(sxx, 0) * np.maximum(syy, 0))


def _untied(n: float, counts: Floats) -> float:
    return n * (n - 1) / 2 - float((counts * (counts - 1)).sum()) / 2


def kendall_value(table: PairTable) -> float | None:
    """tau-b; None where a column is constant."""
    n = float(table.counts.sum())
    untied_x, untied_y = _untied(n, table.x_counts), _untied(n, table.y_counts)
    if untied_x <= 0 or untied_y <= 0:
        return None
    score = float(table.counts @ concordance(table).score) / 2
    return max(-1.0, min(1.0, score / math.sqrt(untied_x) / math.sqrt(untied_y)))


def kendall_leave_one_out(table: PairTable) -> Floats:
    """tau-b without one pair of each cell (NaN where that makes a column constant)."""
    relation = concordance(table)
    n = float(table.counts.sum())
    score = float(table.counts @ relation.score) / 2 - relation.score
    untied_x = _untied(n, table.x_counts) - (n - relation.tied_x)
    untied_y = _untied(n, table.y_counts) - (n - relation.tied_y)
    return ratio(score, untied_x * untied_y)


def adversarial_pair(table: PairTable, value: float) -> PairTable:
    """The table with one pair against the association: lowest x with highest y (lowest y for a negative one)."""
    return table.with_pair(0, len(table.y_levels) - 1 if value >= 0 else 0)


def association(
    name: str,
    table: PairTable,
    value_of: Callable[[PairTable], float | None],
    leave_one_out: Callable[[PairTable], Floats],
    *,
    level: float,
    sided: Sided,
    clusters: Sequence[Any] | None,
    constant_reason: str = "constant_input",
) -> Stat:
    """A correlation-like statistic with jackknife-z limits, or the typed reason why there is none.

    At perfect or near-perfect association the jackknife is undefined; the limits are then those of Bonett and Wright at
    the value with one adversarial pair added, and the status is `fallback`.
    """
    n, dropped = table.n, table.n_dropped
    if n < 3:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    value = value_of(table)
    if value is None:
        return undefined(name, constant_reason, n=n, n_dropped=dropped)
    details: dict[str, Any] = {}
    if clusters is None:
        units, weights = leave_one_out(table), table.counts
    else:
        units = without_each_cluster(table, clusters, value_of)
        weights = np.ones(len(units))
        details["n_clusters"] = len(units)
    interval = jackknife_interval(value, units, weights, level, sided)
    status: Status = "ok" if n >= _LOW_N else "low_precision"
    reason = None if n >= _LOW_N else "n_too_small"
    if clusters is not None and len(units) < 10:
        status, reason = "low_precision", "few_clusters"
    if interval is None:
        interval, status, reason = _fallback(table, value, units, weights, value_of, level, sided)
    if interval is not None:
        details |= interval.details() | {"centre": interval.centre}
    return Stat(
        name=name, value=value, n=n, n_dropped=dropped, status=status, reason=reason, estimand="population",
        lower=None if interval is None else min(interval.lower, value),
        upper=None if interval is None else max(interval.upper, value),
        level=level, sided=sided, method=interval.method if interval else "point",
        assumptions=("clusters are independent" if clusters is not None else "pairs are independent",), details=details,
    )  # fmt: skip


def _fallback(
    table: PairTable, value: float, units: Floats, weights: Floats, value_of: Callable[[PairTable], float | None],
    level: float, sided: Sided,
) -> tuple[ZInterval | None, Status, str]:  # fmt: skip
    if float(weights.sum()) < 4 or table.n < 4:
        return None, "low_precision", "n_too_small"
    if np.isnan(units).any():
        return None, "low_precision", "one_unit_carries_all_variation"
    adjusted = value_of(adversarial_pair(table, value))
    if adjusted is None or abs(adjusted) >= 1:
        return None, "low_precision", "perfect_association"
    # With clusters only as many independent units as clusters support the limit.
    return bonett_wright(adjusted, float(weights.sum()) + 1, level, sided), "fallback", "perfect_association"


def spearman(
    x: Numbers | PairTable,
    y: Numbers | None = None,
    level: float = 0.95,
    *,
    sided: Sided = "two",
    clusters: Sequence[Any] | None = None,
    name: str = "spearman_rho",
) -> Stat:
    """Spearman's rho (mid-ranks, tie-corrected) with delete-one jackknife limits on Fisher's z.

    Args:
        x: One column (None = missing), or a `PairTable`.
        y: The other column.
        level: Confidence level of the limits.
        sided: One two-sided interval, or two one-sided limits.
        clusters: One id per row; then whole clusters are left out.
        name: Name of the statistic.

    Returns:
        rho; undefined with `n_too_small` (under 3 complete pairs) or `constant_input`. Under 20 pairs `low_precision`.
    """
    return association(
        name, as_pairs(x, y), spearman_value, spearman_leave_one_out, level=level, sided=sided, clusters=clusters
    )


def kendall_tau_b(
    x: Numbers | PairTable,
    y: Numbers | None = None,
    level: float = 0.95,
    *,
    sided: Sided = "two",
    clusters: Sequence[Any] | None = None,
) -> Stat:
    """Kendall's tau-b with jackknife-z limits; arguments and refusals as in `spearman`."""
    return association(
        "kendall_tau_b",
        as_pairs(x, y),
        kendall_value,
        kendall_leave_one_out,
        level=level,
        sided=sided,
        clusters=clusters,
    )


def spearman_bonett_wright(
    x: Numbers | PairTable, y: Numbers | None = None, level: float = 0.95, *, sided: Sided = "two"
) -> Stat:
    """Spearman's rho with the Bonett-Wright (2000) interval: for planning; wrong for skewed ordered categories."""
    table = as_pairs(x, y)
    if table.n < 4:
        return undefined("spearman_rho", "n_too_small", n=table.n, n_dropped=table.n_dropped)
    value = spearman_value(table)
    if value is None:
        return undefined("spearman_rho", "constant_input", n=table.n, n_dropped=table.n_dropped)
    perfect = abs(value) >= 1
    centre = value if not perfect else spearman_value(adversarial_pair(table, value)) or 0.0
    interval = bonett_wright(centre, table.n + perfect, level, sided)
    return Stat(
        name="spearman_rho", value=value, n=table.n, n_dropped=table.n_dropped, lower=min(interval.lower, value),
        upper=max(interval.upper, value), level=level, sided=sided, method="bonett_wright", estimand="population",
        status="fallback" if perfect else "ok", reason="perfect_association" if perfect else None,
        details=interval.details(),
    )  # fmt: skip


def spearman_weighted(x: Numbers, y: Numbers, weights: Numbers) -> Stat:
    """rho with inverse-probability weights (weighted mid-ranks): what a stratified label sample says of the whole."""
    (xs, ys, ws), dropped = complete(x, y, weights)
    name, n = "spearman_rho_weighted", len(xs)
    if n < 3:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    if (ws <= 0).any():
        raise ValueError("Inverse-probability weights must be positive.")
    table = PairTable.from_rows(xs, ys)
    assert table.cell_of_row is not None
    weighted = table.recounted(weighted_counts(table.cell_of_row, ws * n / ws.sum(), len(table.counts)))
    value = spearman_value(weighted)
    if value is None:
        return undefined(name, "constant_input", n=n, n_dropped=dropped)
    return Stat(
        name=name, value=value, n=n, n_dropped=dropped, method="weighted_midranks", estimand="population",
        details={"n_effective": float(ws.sum()) ** 2 / float(ws @ ws)},
    )  # fmt: skip


def spearman_difference(human: Numbers, old: Numbers, new: Numbers, level: float = 0.95) -> Stat:
    """z(rho_new) - z(rho_old) of two judges on the same labels; the jackknife deletes the same case from both."""
    (h, a, b), dropped = complete(human, old, new)
    name, n = "spearman_z_difference", len(h)
    if n < 4:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    tables = [PairTable.from_rows(h, judge) for judge in (a, b)]
    rho_old, rho_new = (spearman_value(table) for table in tables)
    if rho_old is None or rho_new is None:
        return undefined(name, "constant_input", n=n, n_dropped=dropped)
    units = [spearman_leave_one_out(table)[table.cell_of_row] for table in tables]
    details = {"rho_old": rho_old, "rho_new": rho_new}
    ones = np.ones(n)
    if any(abs(value) >= 1 - 1e-12 for value in (rho_old, rho_new)) or any(
        z_standard_error(u, ones) is None for u in units
    ):
        return undefined(name, "perfect_association", n=n, n_dropped=dropped, details=details)
    z = np.arctanh(units[1]) - np.arctanh(units[0])
    se = math.sqrt((n - 1) / n * float(((z - z.mean()) ** 2).sum()))
    value = math.atanh(rho_new) - math.atanh(rho_old)
    half = t_quantile(tail_probability(level, "two"), n - 1) * se
    p = 1.0 if value == 0 else 2 * t_cdf(-abs(value) / se, n - 1) if se > 0 else None
    return Stat(
        name=name, value=value, n=n, n_dropped=dropped, lower=value - half, upper=value + half, level=level,
        sided="two", p=p, method="jackknife_fisher_z", estimand="population", details=details | {"se_z": se},
    )  # fmt: skip
