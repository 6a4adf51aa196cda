"""Rank correlation of two columns given a third: what the length probe reads."""

from __future__ import annotations

import math

import numpy as np

from .correlation import centred_midranks, ratio, spearman_leave_one_out, spearman_value
from .counts import Floats, Numbers, PairTable, as_counts, as_floats, complete
from .jackknife import jackknife_interval
from .stat import Stat, undefined


def partial_spearman(
    score: Numbers, length: Numbers, human: Numbers, level: float = 0.95, *, seed: int = 0, resamples: int = 9999
) -> Stat:
    """Rank correlation of score and length given human: (r_sl - r_sh r_lh) / sqrt((1 - r_sh^2)(1 - r_lh^2)).

    Limits by the jackknife on Fisher's z; p by permuting the rank residuals of length given human (Freedman & Lane).
    """
    (s, le, h), dropped = complete(score, length, human)
    name, n = "partial_spearman", len(s)
    if n < 5:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    tables = [PairTable.from_rows(*pair) for pair in ((s, le), (s, h), (le, h))]
    values = [spearman_value(table) for table in tables]
    if any(value is None for value in values):
        return undefined(name, "constant_input", n=n, n_dropped=dropped)
    point = _partial(*(np.array([value]) for value in values))
    if np.isnan(point[0]):
        return undefined(name, "perfect_association", n=n, n_dropped=dropped)
    units = _partial(*(spearman_leave_one_out(table)[table.cell_of_row] for table in tables))
    interval = jackknife_interval(float(point[0]), units, np.ones(n), level, "two")
    low = n < 30 or interval is None
    return Stat(
        name=name, value=float(point[0]), n=n, n_dropped=dropped, method="partial_midranks", estimand="population",
        lower=interval.lower if interval else None, upper=interval.upper if interval else None, level=level,
        sided="two", p=_residual_permutation(s, le, h, seed, resamples), status="low_precision" if low else "ok",
        reason="n_too_small" if low else None,
        details={"seed": seed, "resamples": resamples, "bit_generator": "PCG64"},
    )  # fmt: skip


def _partial(xy: Floats, xz: Floats, yz: Floats) -> Floats:
    return ratio(xy - xz * yz, (1 - xz**2) * (1 - yz**2))


def _row_ranks(values: Floats) -> Floats:
    sample = as_counts(values)
    return centred_midranks(sample.counts)[np.searchsorted(sample.levels, as_floats(values))]


def _residual_permutation(x: Floats, y: Floats, z: Floats, seed: int, resamples: int) -> float:
    control = _row_ranks(z)
    control /= math.sqrt(float(control @ control))
    rx, ry = _row_ranks(x), _row_ranks(y)
    rx, ry = rx - control * (rx @ control), ry - control * (ry @ control)
    observed = abs(float(rx @ ry)) / math.sqrt(float(ry @ ry))
    rng, extreme = np.random.default_rng(seed), 0
    batch = max(1, 4_000_000 // len(rx))
    for start in range(0, resamples, batch):
        shuffled = rng.permuted(np.tile(ry, (min(batch, resamples - start), 1)), axis=1)
        left = np.sqrt(np.maximum(float(ry @ ry) - (shuffled @ control) ** 2, 1e-300))
        extreme += int((np.abs(shuffled @ rx) / left >= observed - 1e-12).sum())
    return (extreme + 1) / (resamples + 1)
