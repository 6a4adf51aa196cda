"""Permutation tests of paired runs: sign flips against one run, case-wise relabelling against a window of runs.

Both are exact on a grid: the characteristic function of the sum is a product over the distinct cases, and one inverse
FFT gives its whole distribution. Off the grid they are Monte Carlo with a stored seed. Effect sizes are in `paired`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .counts import Counts, Floats, Numbers, PairTable, as_floats, as_pairs, complete, group_codes
from .quantiles import normal_cdf
from .stat import Stat, undefined

Alternative = Literal["less", "greater", "two-sided"]

SMALLEST_P = 1e-12
"""Beyond this the FFT has no correct digits left; smaller p values are reported as this."""

_SCALES = (1, 2, 4, 8, 3, 6, 12, 24, 5, 10, 20, 40, 100, 120, 840, 1000)
_LARGEST_SUPPORT = 1 << 22
_MONTE_CARLO_DRAWS = 400_000_000


def grid_scale(values: Floats) -> int | None:
    """The smallest of some integers that makes all values whole numbers, or None."""
    for scale in _SCALES:
        scaled = values * scale
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) < 1e-7:
            return scale
    return None


def sign_flip(
    old: Numbers | PairTable | Counts,
    new: Numbers | None = None,
    *,
    alternative: Alternative = "two-sided",
    clusters: Sequence[Any] | None = None,
    seed: int = 0,
    resamples: int = 9999,
    name: str = "sign_flip",
) -> Stat:
    """Paired permutation test that old and new are exchangeable; value = mean(new - old).

    Args:
        old: Scores of one run, a `PairTable` (x old, y new), or `Counts` of the differences.
        new: Scores of the other run, same cases in the same order; pairs with a missing side are dropped and counted.
        alternative: `less`: new is lower.
        clusters: One id per case; whole clusters flip together.
        seed: Of the Monte Carlo test, used off the grid only (Phipson & Smyth 2010: p = (b+1)/(B+1)).
        resamples: B of the same. name: of the statistic.

    Returns:
        The mean difference with `p`; `n_changed` in the details. No case changed: value 0 and p = 1.
    """
    if clusters is not None:
        (a, b, g), dropped = complete(old, new, group_codes(clusters)[1].astype(np.float64))
        n = len(a)
        values = np.bincount(g.astype(np.int64), weights=b - a).astype(np.float64)
        weights = np.ones(len(values))
        changed = int((np.abs(b - a) > 1e-12).sum())
    else:
        differences = old if isinstance(old, Counts) else as_pairs(old, new).differences()
        n, dropped = differences.n, differences.n_dropped
        values, weights = differences.levels, differences.counts
        changed = int(weights[np.abs(values) > 1e-12].sum())
    if n == 0:
        return undefined(name, "n_zero", n_dropped=dropped)
    total = float(values @ weights)
    keep = np.abs(values) > 1e-12
    values, weights = values[keep], weights[keep]
    scale = grid_scale(values)
    details: dict[str, Any] = {"n_changed": changed}
    if scale is not None and scale * float(np.abs(values) @ weights) < 1e15:
        less, greater = _flip_exact(np.rint(np.abs(values) * scale).astype(np.int64), weights, round(total * scale))
        method = "exact_sign_flip"
    else:
        steps = np.repeat(np.abs(values), np.rint(weights).astype(np.int64))
        if len(steps) <= 20:
            less, greater = _flip_enumerated(steps, total)
            method = "exact_sign_flip"
        elif len(steps) * resamples > _MONTE_CARLO_DRAWS:
            z = total / math.sqrt(float(steps @ steps))
            less, greater, method = normal_cdf(z), normal_cdf(-z), "normal_sign_flip"
        else:
            less, greater = _flip_sampled(steps, total, seed, resamples)
            method = "monte_carlo_sign_flip"
            details |= {"seed": seed, "resamples": resamples, "bit_generator": "PCG64"}
    return Stat(
        name=name, value=total / n, n=n, n_dropped=dropped, p=_p(less, greater, alternative), method=method,
        estimand="fixed_set", assumptions=("the two runs are exchangeable case by case under the null",),
        details=details | {"alternative": alternative},
    )  # fmt: skip


def _p(less: float, greater: float, alternative: Alternative) -> float:
    p = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}[alternative]
    return min(1.0, max(SMALLEST_P, p))


def _lattice_tails(
    magnitude: Any, mean: float, sd: float, support: int, observed: int
) -> tuple[float, float]:  # fmt: skip
    """P(T <= observed) and P(T >= observed) of a sum on the integers 0..support.

    `magnitude(theta)` is the characteristic function at each angle times exp(-i theta mean). Mass beyond 14 standard
    deviations is below 1e-43, so the lattice may be cut there without aliasing.
    """
    reach = int(min(support, math.ceil(14 * sd) + 2))
    size = 1 << max(3, (2 * reach + 4).bit_length())
    theta = 2 * math.pi * np.arange(size // 2 + 1) / size
    centre = round(mean)
    values = magnitude(theta) * np.exp(1j * theta * (mean - centre))
    probability = np.maximum(np.fft.irfft(np.conj(values), n=size), 0.0)
    probability /= probability.sum()
    offsets = np.arange(size)
    offsets = np.where(offsets >= size // 2, offsets - size, offsets)
    shift = observed - centre
    less, greater = probability[offsets <= shift].sum(), probability[offsets >= shift].sum()
    return float(less), float(greater)


def _flip_exact(steps: np.ndarray, weights: Floats, observed: int) -> tuple[float, float]:
    """Tails of sum(+-step): T = 2 S - total with S the sum of the steps that came up positive."""
    sizes, index = np.unique(steps, return_inverse=True)
    counts = np.bincount(index.ravel(), weights=weights)
    total = round(float(sizes @ counts))
    if total == 0:
        return 1.0, 1.0

    def characteristic(theta: Floats) -> Floats:
        log_size, sign = np.zeros(len(theta)), np.ones(len(theta))
        for size, count in zip(sizes, counts, strict=True):
            cosine = np.cos(size * theta / 2)
            log_size += count * np.log(np.maximum(np.abs(cosine), 1e-300))
            if round(count) % 2:
                sign *= np.sign(cosine)
        return sign * np.exp(log_size)

    sd = math.sqrt(float((sizes.astype(np.float64) ** 2) @ counts)) / 2
    return _lattice_tails(characteristic, total / 2, sd, total, (observed + total) // 2)


def _flip_enumerated(steps: Floats, observed: float) -> tuple[float, float]:
    sums = np.zeros(1)
    for step in steps:
        sums = np.concatenate([sums - step, sums + step])
    return float((sums <= observed + 1e-9).mean()), float((sums >= observed - 1e-9).mean())


def _flip_sampled(steps: Floats, observed: float, seed: int, resamples: int) -> tuple[float, float]:
    rng, less, greater = np.random.default_rng(seed), 0, 0
    batch = max(1, 8_000_000 // len(steps))
    for start in range(0, resamples, batch):
        signs = rng.integers(0, 2, size=(min(batch, resamples - start), len(steps)), dtype=np.int8)
        sums = (2.0 * signs - 1.0) @ steps
        less += int((sums <= observed + 1e-9).sum())
        greater += int((sums >= observed - 1e-9).sum())
    return (less + 1) / (resamples + 1), (greater + 1) / (resamples + 1)


def relabelling(
    window: Sequence[Numbers],
    new: Numbers,
    *,
    alternative: Alternative = "less",
    seed: int = 0,
    resamples: int = 9999,
    name: str = "relabelling",
) -> Stat:
    """Case-wise relabelling test of a run against the runs of a window.

    Within each case the new score is equally likely to be any of its N+1 scores. A sign flip of new minus window mean
    is wrong near the ceiling, where that difference is skewed.

    Args:
        window: The earlier runs, each with the same cases in the same order; a missing score leaves fewer to exchange
            with. A case without a new score or without any earlier one is dropped and counted.
        new: Scores of the new run. alternative: `less`: new is lower.
        seed: Of the Monte Carlo test off the grid. resamples: B. name: of the statistic.

    Returns:
        mean over cases of new minus the case's window mean, with `p`.
    """
    columns = [as_floats(new), *(as_floats(run) for run in window)]
    if len(columns) < 2:
        return undefined(name, "no_comparable_baseline")
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"Runs of different length: {[len(column) for column in columns]}.")
    scores = np.stack(columns, axis=1)
    available = (~np.isnan(scores[:, 1:])).sum(axis=1)
    keep = ~np.isnan(scores[:, 0]) & (available > 0)
    dropped = int(len(keep) - keep.sum())
    scores, available = scores[keep], available[keep]
    n = len(scores)
    if n == 0:
        return undefined(name, "n_zero", n_dropped=dropped)
    drop = float((scores[:, 0] - np.nansum(scores[:, 1:], axis=1) / available).mean())
    # A case whose scores are all equal is the same under every relabelling.
    varies = np.nanmax(scores, axis=1) - np.nanmin(scores, axis=1) > 1e-12
    moving = np.sort(scores[varies], axis=1)
    observed = float(scores[varies, 0].sum())
    details: dict[str, Any] = {"runs": len(columns) - 1, "n_changed": int(varies.sum()), "alternative": alternative}
    scale = grid_scale(moving[~np.isnan(moving)])
    if len(moving) == 0:
        less = greater = 1.0
        method = "exact_relabelling"
    elif scale is not None:
        less, greater = _relabel_exact(moving * scale, round(observed * scale))
        method = "exact_relabelling"
    elif len(moving) * resamples > _MONTE_CARLO_DRAWS:
        z = (observed - float(np.nanmean(moving, axis=1).sum())) / math.sqrt(float(np.nanvar(moving, axis=1).sum()))
        less, greater, method = normal_cdf(z), normal_cdf(-z), "normal_relabelling"
    else:
        less, greater = _relabel_sampled(moving, observed, seed, resamples)
        method = "monte_carlo_relabelling"
        details |= {"seed": seed, "resamples": resamples, "bit_generator": "PCG64"}
    return Stat(
        name=name, value=drop, n=n, n_dropped=dropped, p=_p(less, greater, alternative), method=method,
        estimand="fixed_set", assumptions=("within a case all runs are exchangeable under the null",), details=details,
    )  # fmt: skip


def _relabel_exact(scaled: Floats, observed: int) -> tuple[float, float]:
    """Tails of the sum of one uniformly drawn score per case; `scaled` is on whole numbers, NaN = missing."""
    grades = np.where(np.isnan(scaled), np.inf, np.rint(scaled))
    patterns, counts = _distinct_rows(grades)
    finite = np.isfinite(patterns)
    sizes = finite.sum(axis=1)
    lowest = np.where(finite, patterns, np.inf).min(axis=1)
    offsets = np.where(finite, patterns - lowest[:, None], 0.0)
    means = offsets.sum(axis=1) / sizes
    variances = (offsets**2 * finite).sum(axis=1) / sizes - means**2
    mean, sd = float(means @ counts), math.sqrt(max(0.0, float(variances @ counts)))
    support = int(offsets.max(axis=1) @ counts)

    def characteristic(theta: Floats) -> Floats:
        log_size, angle = np.zeros(len(theta)), np.zeros(len(theta))
        alive = np.arange(len(theta))
        for row, keep, size, middle, count in zip(offsets, finite, sizes, means, counts, strict=True):
            values, times = np.unique(row[keep], return_counts=True)
            phases = np.exp(1j * np.outer(theta[alive], values - middle)) @ (times / size)
            log_size[alive] += count * np.log(np.maximum(np.abs(phases), 1e-300))
            angle[alive] += count * np.angle(phases)
            alive = alive[log_size[alive] > -80]
        return np.exp(log_size) * np.exp(1j * np.remainder(angle, 2 * math.pi))

    return _lattice_tails(characteristic, mean, sd, support, observed - round(float(lowest @ counts)))


def _distinct_rows(rows: Floats) -> tuple[Floats, Floats]:
    """Distinct rows of whole numbers (inf = missing) and their counts.

    Each row becomes one number where that fits 62 bits: np.unique on rows is 20 times slower.
    """
    finite = np.isfinite(rows)
    low = float(rows[finite].min())
    width = int(rows[finite].max() - low) + 2
    if rows.shape[1] * math.log2(width) < 62:
        digits = np.where(finite, rows - low, width - 1).astype(np.int64)
        key = digits @ (np.int64(width) ** np.arange(rows.shape[1], dtype=np.int64))
        if width ** rows.shape[1] <= 4_000_000:
            every = np.bincount(key)
            used = np.flatnonzero(every)
            row_of = np.empty(len(every), dtype=np.int64)
            row_of[key] = np.arange(len(key))
            return rows[row_of[used]], every[used].astype(np.float64)
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        return rows[first], counts.astype(np.float64)
    patterns, counts = np.unique(rows, axis=0, return_counts=True)
    return patterns, counts.astype(np.float64)


def _relabel_sampled(rows: Floats, observed: float, seed: int, resamples: int) -> tuple[float, float]:
    rng, less, greater = np.random.default_rng(seed), 0, 0
    sizes = (~np.isnan(rows)).sum(axis=1)  # Sorted rows hold their missing scores last.
    batch = max(1, 4_000_000 // len(rows))
    for start in range(0, resamples, batch):
        picks = (rng.random((min(batch, resamples - start), len(rows))) * sizes).astype(np.int64)
        sums = rows[np.arange(len(rows)), picks].sum(axis=1)
        less += int((sums <= observed + 1e-9).sum())
        greater += int((sums >= observed - 1e-9).sum())
    return (less + 1) / (resamples + 1), (greater + 1) / (resamples + 1)
