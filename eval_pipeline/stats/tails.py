"""The bottom of the distribution: CVaR10 with its lower limit, the tenth percentile, the worst items, catastrophes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from .counts import Floats, Sample, as_counts, as_floats, as_pairs
from .quantiles import binomial_cdf, t_quantile, tail_probability
from .rates import clopper_pearson
from .stat import Sided, Stat, undefined


def _cvar(levels: Floats, counts: Floats, alpha: float) -> Floats:
    """CVaR of samples on shared ascending levels; `counts` may have leading axes. At least the worst case counts."""
    n = counts.sum(axis=-1, keepdims=True)
    k = np.maximum(alpha * n, 1.0)
    before = np.cumsum(counts, axis=-1) - counts
    taken = np.clip(k - before, 0.0, counts)
    return (taken @ levels) / k[..., 0]


def cvar(scores: Sample, alpha: float = 0.1, *, name: str = "cvar10") -> Stat:
    """Mean of the worst `alpha` share (expected shortfall; Rockafellar & Uryasev 2000, Acerbi & Tasche 2002).

    k = alpha n; the worst floor(k) scores count fully, the next one by the fraction left, so nothing jumps between
    n = 19 and 20. k < 1 gives the minimum. The plug-in is biased upward at small n: read it with `cvar_lower_limit`.
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha lies in (0, 1], not {alpha}.")
    sample = as_counts(scores)
    if sample.n == 0:
        return undefined(name, "n_zero", n_dropped=sample.n_dropped)
    k = alpha * sample.n
    low = k < 10
    return Stat(
        name=name, value=float(_cvar(sample.levels, sample.counts, alpha)), n=sample.n, n_dropped=sample.n_dropped,
        method="expected_shortfall", estimand="fixed_set", status="low_precision" if low else "ok",
        reason="tail_too_small" if low else None, details={"k": k, "alpha": alpha},
    )  # fmt: skip


def cvar_lower_limit(
    scores: Sample, alpha: float = 0.1, level: float = 0.95, *, worst: float = 0.0, name: str = "cvar10"
) -> Stat:
    """CVaR with its one-sided lower limit.

    One worst-case pseudo-case is added, then t(n) with the influence function q - (q-x)+/alpha (own construction;
    its miss rate is simulated in benchmarks). Below k = 5 there is no limit, below 10 it is `low_precision`.
    """
    point = cvar(scores, alpha, name=name)
    if point.value is None:
        return point
    sample = as_counts(scores)
    extended = sample.with_value(worst)
    n = sample.n + 1
    k = alpha * n
    cumulative = np.cumsum(extended.counts)
    quantile = float(extended.levels[np.searchsorted(cumulative, max(k, 1.0) - 1e-9)])
    influence = quantile - np.maximum(quantile - extended.levels, 0.0) / alpha
    centre = float(influence @ extended.counts) / n
    variance = float(((influence - centre) ** 2) @ extended.counts) / (n - 1)
    limit = float(_cvar(extended.levels, extended.counts, alpha)) - t_quantile(level, n - 1) * math.sqrt(variance / n)
    enough = alpha * sample.n >= 5
    return Stat(
        name=name, value=point.value, n=sample.n, n_dropped=sample.n_dropped, level=level, sided="one",
        lower=min(max(limit, worst), point.value) if enough else None, method="influence_pseudo_case",
        estimand="population", status=point.status, reason=point.reason,
        assumptions=("rows are independent",), details={**point.details, "unclipped_lower": limit},
    )  # fmt: skip


def low_quantile(
    scores: Sample, p: float = 0.1, level: float = 0.95, *, sided: Sided = "two", name: str = "q10"
) -> Stat:
    """The p-quantile (inverse of the distribution function) with its order-statistic interval.

    Where no order statistic reaches the level (p = .1: below n = 36 for the lower limit) that limit is None and a note
    says so. On a five-point grid CVaR says more.
    """
    sample = as_counts(scores)
    n = sample.n
    if n == 0:
        return undefined(name, "n_zero", n_dropped=sample.n_dropped)
    cumulative = np.cumsum(sample.counts)

    def order_statistic(rank: int) -> float:
        return float(sample.levels[np.searchsorted(cumulative, rank - 0.5)])

    tail = 1 - tail_probability(level, sided)
    below, above = _quantile_ranks(n, p, tail)
    notes = tuple(f"no {side} limit at n = {n}" for side, rank in (("lower", below), ("upper", above)) if rank is None)
    return Stat(
        name=name, value=order_statistic(max(1, math.ceil(p * n - 1e-9))), n=n, n_dropped=sample.n_dropped,
        lower=None if below is None else order_statistic(below),
        upper=None if above is None else order_statistic(above),
        level=level, sided=sided, method="order_statistics", estimand="population", notes=notes,
    )  # fmt: skip


def _quantile_ranks(n: int, p: float, tail: float) -> tuple[int | None, int | None]:
    """Largest rank whose order statistic is a lower limit, smallest that is an upper one, None where there is none."""
    ranks = np.arange(n + 1)
    centre, width = p * n, 8 * math.sqrt(n * p * (1 - p)) + 8
    window = ranks[(ranks >= centre - width) & (ranks <= centre + width)]
    cdf = np.array([binomial_cdf(int(rank), n, p) for rank in window]) if n <= 2000 else _binomial_cdfs(window, n, p)
    lower = window[cdf <= tail]
    upper = window[cdf >= 1 - tail]
    below = int(lower[-1]) + 1 if len(lower) else None
    above = int(upper[0]) + 1 if len(upper) and upper[0] < n else None
    return below, above


def _binomial_cdfs(ranks: np.ndarray, n: int, p: float) -> Floats:
    from scipy.special import bdtr

    return np.asarray(bdtr(ranks.astype(np.float64), n, p), dtype=np.float64)


def catastrophic_share(scores: Sample, cut: float, level: float = 0.95, *, name: str = "catastrophic_share") -> Stat:
    """Share of scores at or below `cut`, with the one-sided exact upper limit; 0 of n gives 1 - (1-level)^(1/n)."""
    sample = as_counts(scores)
    if sample.n == 0:
        return undefined(name, "n_zero", n_dropped=sample.n_dropped)
    k = float(sample.counts[sample.levels <= cut].sum())
    share = clopper_pearson(k, sample.n, level, name=name, sided="one")
    return Stat(
        name=name, value=share.value, n=sample.n, n_dropped=sample.n_dropped, lower=share.lower, upper=share.upper,
        level=level, sided="one", method="clopper_pearson", estimand="population", details={"k": k, "cut": cut},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorstItems:
    """Ids of the worst items: those without a valid score first, then by score; ties straddling the cut are listed."""

    ids: tuple[Hashable, ...]
    tied_count: int
    """How many items were in the list before it was capped."""


def worst_items(ids: Sequence[Hashable], scores: object, alpha: float = 0.1, cap: int = 50) -> WorstItems:
    """The ceil(alpha n) worst items, all ties included, at most `cap`; unknown is worse than bad."""
    values = as_floats(scores)
    if len(values) != len(ids):
        raise ValueError(f"{len(ids)} ids but {len(values)} scores.")
    if len(values) == 0:
        return WorstItems((), 0)
    ranked = np.where(np.isnan(values), -np.inf, values)
    k = max(1, math.ceil(alpha * len(values) - 1e-9))
    threshold = np.partition(ranked, k - 1)[k - 1]
    chosen = np.flatnonzero(ranked <= threshold)
    order = sorted(chosen.tolist(), key=lambda row: (ranked[row], str(ids[row])))
    return WorstItems(tuple(ids[row] for row in order[:cap]), len(order))


def cvar_change(
    old: object, new: object = None, alpha: float = 0.1, level: float = 0.90, *, seed: int = 0, resamples: int = 9999
) -> Stat:
    """CVaR(new) - CVaR(old), paired, with a percentile interval from the multinomial bootstrap: an alert only."""
    table = as_pairs(old, new)  # type: ignore[arg-type]
    name, n = "cvar10_change", table.n
    if n == 0:
        return undefined(name, "n_zero", n_dropped=table.n_dropped)
    x_levels, y_levels = len(table.x_levels), len(table.y_levels)

    def marginal(counts: Floats, index: np.ndarray, size: int) -> Floats:
        return counts @ np.eye(size)[index]

    value = float(_cvar(table.y_levels, table.y_counts, alpha) - _cvar(table.x_levels, table.x_counts, alpha))
    cells = len(table.counts)
    if cells * max(x_levels, y_levels) > 5_000_000:
        return Stat(
            name=name, value=value, n=n, n_dropped=table.n_dropped, method="point", estimand="fixed_set",
            status="low_precision", reason="too_many_levels",
        )  # fmt: skip
    rng = np.random.default_rng(seed)
    draws: list[Floats] = []
    batch = max(1, min(resamples, 20_000_000 // max(cells, 1)))
    for start in range(0, resamples, batch):
        counts = rng.multinomial(n, table.counts / table.counts.sum(), size=min(batch, resamples - start)).astype(float)
        draws.append(
            _cvar(table.y_levels, marginal(counts, table.y_index, y_levels), alpha)
            - _cvar(table.x_levels, marginal(counts, table.x_index, x_levels), alpha)
        )
    lower, upper = np.quantile(np.concatenate(draws), [(1 - level) / 2, (1 + level) / 2])
    low = alpha * n < 10
    return Stat(
        name=name, value=value, n=n, n_dropped=table.n_dropped, lower=lower, upper=upper, level=level, sided="two",
        method="multinomial_bootstrap", estimand="population", status="low_precision" if low else "ok",
        reason="tail_too_small" if low else None,
        details={"seed": seed, "resamples": resamples, "bit_generator": "PCG64"},
    )  # fmt: skip
