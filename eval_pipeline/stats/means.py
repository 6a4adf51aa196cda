"""The mean of scores in [0, 1] with one interval for all sizes, clusters and strata.

The bottom tail is in `tails`, missing grades in `grades`, yes/no shares in `rates`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .counts import Counts, Floats, Ints, Numbers, Sample, as_counts, as_floats, group_codes
from .quantiles import normal_quantile, t_quantile, tail_probability
from .stat import Sided, Stat, undefined

_METHOD = "pseudo_observation"


def pseudo_limits(mean: float, variance: float, n: float, quantile: float) -> tuple[float, float, float]:
    """Limits and standard error of the pseudo-observation interval, unclipped.

    quantile^2/2 observations of 0 and as many of 1 are added to n observations with the given mean and population
    variance. For 0/1 scores this is Agresti and Coull (1998).
    """
    added = quantile**2
    centre = (n * mean + added / 2) / (n + added)
    spread = n * (variance + (mean - centre) ** 2) + added / 2 * (centre**2 + (1 - centre) ** 2)
    se = math.sqrt(spread / (n + added) ** 2)
    return centre - quantile * se, centre + quantile * se, se


def cluster_standard_errors(scores: Numbers, clusters: Sequence[Any] | Ints) -> Stat:
    """Mean with its cluster-robust standard errors CR0 and CR1 (Cameron & Miller 2015) in the details."""
    values, group, dropped = _clustered(scores, clusters)
    n = len(values)
    if n < 2:
        return undefined("mean", "n_too_small" if n else "n_zero", n=n, n_dropped=dropped)
    sums = np.bincount(group, weights=values - values.mean())
    g = int(group.max()) + 1
    cr0 = math.sqrt(float(sums @ sums)) / n
    cr1 = cr0 * math.sqrt(g / (g - 1)) if g > 1 else None
    return Stat(
        name="mean", value=float(values.mean()), n=n, n_dropped=dropped, method="cluster_robust", estimand="population",
        details={"se_cr0": cr0, "se_cr1": cr1, "se_iid": float(values.std(ddof=1)) / math.sqrt(n), "n_clusters": g},
    )  # fmt: skip


def _clustered(scores: Numbers, clusters: Sequence[Any] | Ints) -> tuple[Floats, Ints, int]:
    values = as_floats(scores)
    _, group = group_codes(clusters)
    if len(group) != len(values):
        raise ValueError(f"{len(values)} scores but {len(group)} cluster ids.")
    keep = ~np.isnan(values)
    _, used = np.unique(group[keep], return_inverse=True)
    return values[keep], used.astype(np.int64).ravel(), int(len(values) - keep.sum())


def _outside(name: str, sample: Counts) -> None:
    if len(sample.levels) and (sample.levels[0] < 0 or sample.levels[-1] > 1):
        raise ValueError(f"{name}: scores lie in [0, 1], here from {sample.levels[0]} to {sample.levels[-1]}.")


def mean_interval(
    scores: Sample,
    level: float = 0.95,
    *,
    clusters: Sequence[Any] | Ints | None = None,
    sided: Sided = "two",
    name: str = "mean",
) -> Stat:
    """Mean score with the effective-n pseudo-observation interval.

    Args:
        scores: Rows (None = missing) or `Counts`, in [0, 1].
        level: Confidence level.
        clusters: One id per row, for rows that share a source. n becomes n / max(1, design effect) and the quantile
            that of t with G-1 degrees of freedom. Fewer than 10 clusters: `low_precision`.
        sided: Two-sided interval, or one-sided limits.
        name: Name of the statistic.

    Returns:
        The mean over the scored rows; undefined with reason `n_zero` when there are none.
    """
    sample = as_counts(scores)
    _outside(name, sample)
    n = sample.n
    if n == 0:
        return undefined(name, "n_zero", n_dropped=sample.n_dropped)
    probability = tail_probability(level, sided)
    quantile, effective, details = normal_quantile(probability), float(n), {}
    status, reason = ("ok", None) if n >= 20 else ("low_precision", "n_too_small")
    if clusters is not None:
        if isinstance(scores, Counts):
            raise TypeError("Clusters need rows, not counts.")
        values, group, _ = _clustered(scores, clusters)
        g = int(group.max()) + 1
        if g < 2:
            return Stat(
                name=name, value=sample.mean, n=n, n_dropped=sample.n_dropped, method=_METHOD, estimand="population",
                status="low_precision", reason="few_clusters", details={"n_clusters": g},
            )  # fmt: skip
        effective, deff = _effective_n(values, group)
        quantile = t_quantile(probability, g - 1)
        details = {"n_clusters": g, "design_effect": deff, "df": g - 1}
        if g < 10:
            status, reason = "low_precision", "few_clusters"
    lower, upper, se = pseudo_limits(sample.mean, sample.variance, effective, quantile)
    return Stat(
        name=name, value=sample.mean, n=n, n_dropped=sample.n_dropped, lower=max(0.0, lower), upper=min(1.0, upper),
        level=level, sided=sided, method=_METHOD, status=status, reason=reason, estimand="population",
        assumptions=("clusters are independent",) if clusters is not None else ("rows are independent",),
        details={"n_effective": effective, "standard_error": se, **details},
    )  # fmt: skip


def _effective_n(values: Floats, group: Ints) -> tuple[float, float]:
    """n / max(1, deff) and deff = CR1 variance / (s^2/n)."""
    n, g = len(values), int(group.max()) + 1
    variance = float(values.var(ddof=1)) if n > 1 else 0.0
    if variance == 0:
        # All rows agree: the design effect cannot be estimated, so each cluster counts once.
        return float(g), n / g
    sums = np.bincount(group, weights=values - values.mean())
    deff = g / (g - 1) * float(sums @ sums) / n**2 / (variance / n)
    return n / max(1.0, deff), deff


def stratified_mean(
    scores: Numbers,
    strata: Sequence[Any],
    weights: Mapping[Any, float],
    level: float = 0.95,
    *,
    clusters: Sequence[Any] | None = None,
    sided: Sided = "two",
    name: str = "weighted_mean",
) -> Stat:
    """Mean with declared stratum weights: sum of W_s times the stratum mean, weights scaled to 1.

    A stratum with a weight but without a scored row makes the result undefined (`missing_stratum`): weights are never
    renormalised over what happens to be there. Rows of strata without a weight are not used and counted as dropped.
    The variance is the sum of W_s^2 v_s with v_s from the stratum's own pseudo-observation interval, the degrees of
    freedom are Satterthwaite's; the interval is the pseudo-observation interval at the effective n they give.
    """
    total = float(sum(weights.values()))
    if not weights or total <= 0 or any(weight < 0 for weight in weights.values()):
        raise ValueError("Stratum weights must be non-negative and sum to more than zero.")
    values, labels = as_floats(scores), np.asarray(list(strata), dtype=object)
    ids = None if clusters is None else np.asarray(list(clusters), dtype=object)
    probability = tail_probability(level, sided)
    z = normal_quantile(probability)
    parts: dict[str, Stat] = {}
    variance = centre = mean = spread = satterthwaite = used = 0.0
    moments: list[tuple[float, float, float]] = []
    for stratum, raw_weight in weights.items():
        weight, rows = raw_weight / total, labels == stratum
        part = mean_interval(
            values[rows], level, clusters=None if ids is None else ids[rows].tolist(), sided=sided, name=str(stratum)
        )
        parts[str(stratum)] = part
        used += part.n
        if weight == 0:
            continue
        if part.value is None:
            return undefined(
                name,
                "missing_stratum",
                n=int(used),
                n_dropped=int(np.isnan(values).sum()),
                details={"stratum": stratum},
            )
        inside = float(np.nanvar(values[rows]))
        effective = float(part.details.get("n_effective", 1.0))
        _, _, se = pseudo_limits(part.value, inside, effective, z)
        df = float(part.details.get("df", max(part.n - 1, 1)))
        variance += weight**2 * se**2
        satterthwaite += (weight**2 * se**2) ** 2 / df
        mean += weight * part.value
        shrunk = (effective * part.value + z * z / 2) / (effective + z * z)
        centre += weight * shrunk
        moments.append((weight, se**2 * (effective + z * z), shrunk))
        spread += weight * (inside + part.value**2)
    within = sum(weight * (var + (shrunk - centre) ** 2) for weight, var, shrunk in moments)
    quantile = t_quantile(probability, max(variance**2 / satterthwaite, 1.0))
    effective = min(used, max(within / variance - z * z, 0.0)) if variance > 0 else used
    lower, upper, se = pseudo_limits(mean, max(spread - mean**2, 0.0), effective, quantile)
    everything = as_counts(values)
    few = any(part.status != "ok" for part in parts.values())
    return Stat(
        name=name, value=mean, n=int(used), n_dropped=len(values) - int(used), lower=max(0.0, lower),
        upper=min(1.0, upper), level=level, sided=sided, method="stratified_" + _METHOD, estimand="population",
        status="low_precision" if few else "ok", reason="small_stratum" if few else None,
        details={
            "unweighted_mean": everything.mean, "standard_error": se, "n_effective": effective,
            "df": variance**2 / satterthwaite, "strata": {key: part.value for key, part in parts.items()},
            "stratum_n": {key: part.n for key, part in parts.items()},
        },
    )  # fmt: skip


def change_hidden_by_pooling(changes: Mapping[Any, float], weights: Mapping[Any, float], pooled: float) -> bool:
    """Simpson check: whether strata holding at least 75% of the weight change against the sign of the pooled change."""
    total = sum(weights.get(stratum, 0.0) for stratum in changes)
    against = sum(weights.get(stratum, 0.0) for stratum, change in changes.items() if change * pooled < 0)
    return total > 0 and against >= 0.75 * total
