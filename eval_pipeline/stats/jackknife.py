"""Delete-one jackknife on Fisher's z: limits for any correlation-like statistic in (-1, 1).

The leave-one-out values come from the caller, one per non-empty cell with its count as weight, or one per cluster.
Deterministic: no seed in a gate. Hall, Martin & Schucany (1988) studentise Pearson's r the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .counts import Floats, PairTable, group_codes
from .quantiles import normal_quantile, t_quantile, tail_probability
from .stat import Sided

_NEAR_ONE = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class ZInterval:
    """Limits on the scale of the statistic, with z, its standard error and degrees of freedom (None: normal)."""

    lower: float
    upper: float
    z: float
    se_z: float
    df: int | None
    method: str
    centre: float

    def details(self) -> dict[str, float | int | None]:
        """The numbers that later tests of the same estimate need."""
        return {"z": self.z, "se_z": self.se_z, "df": self.df}


def z_standard_error(leave_one_out: Floats, weights: Floats) -> float | None:
    """Jackknife standard error on Fisher's z; None where a value is undefined or at +-1."""
    if len(leave_one_out) == 0 or np.isnan(leave_one_out).any() or (np.abs(leave_one_out) >= _NEAR_ONE).any():
        return None
    z = np.arctanh(leave_one_out)
    units = float(weights.sum())
    centre = float(weights @ z) / units
    return math.sqrt((units - 1) / units * float(weights @ (z - centre) ** 2))


def jackknife_interval(
    value: float, leave_one_out: Floats, weights: Floats, level: float, sided: Sided
) -> ZInterval | None:
    """tanh(z -+ t se) with units - 1 degrees of freedom; None where that is undefined (perfect association)."""
    if abs(value) >= _NEAR_ONE or weights.sum() < 4:
        return None
    se = z_standard_error(leave_one_out, weights)
    if se is None:
        return None
    z, df = math.atanh(value), int(weights.sum()) - 1
    half = t_quantile(tail_probability(level, sided), df) * se
    return ZInterval(math.tanh(z - half), math.tanh(z + half), z, se, df, "jackknife_fisher_z", value)


def bonett_wright(value: float, n: float, level: float, sided: Sided) -> ZInterval:
    """Bonett & Wright (2000): z -+ quantile * sqrt((1 + r^2/2) / (n - 3)). Not for ordered categories; n > 3."""
    z = math.atanh(value)
    se = math.sqrt((1 + value**2 / 2) / (n - 3))
    half = normal_quantile(tail_probability(level, sided)) * se
    return ZInterval(math.tanh(z - half), math.tanh(z + half), z, se, None, "bonett_wright", value)


def without_each_cluster(
    table: PairTable, clusters: Sequence[Any], value_of: Callable[[PairTable], float | None], limit: int = 2000
) -> Floats:
    """The statistic without each cluster (NaN where undefined).

    Above `limit` clusters (or 400 on a table of over 1,000 cells) they are merged into that many groups, still a valid
    delete-a-group jackknife.

    Raises:
        TypeError: The table was given as counts, which know no rows.
    """
    return np.array([
        math.nan if (value := value_of(table.recounted(table.counts - removed))) is None else value
        for removed in _cluster_counts(table, clusters, limit if len(table.counts) <= 1000 else 400)
    ])  # fmt: skip


def _cluster_counts(table: PairTable, clusters: Sequence[Any], limit: int) -> Iterator[Floats]:
    if table.cell_of_row is None or table.kept_rows is None:
        raise TypeError("Clusters need rows, not counts.")
    _, group = group_codes(clusters)
    if len(group) != len(table.kept_rows):
        raise ValueError(f"{len(table.kept_rows)} rows but {len(group)} cluster ids.")
    _, used = np.unique(group[table.kept_rows], return_inverse=True)
    used = used.ravel() % limit
    order = np.argsort(used, kind="stable")
    edges = np.flatnonzero(np.diff(used[order])) + 1
    for rows in np.split(order, edges):
        yield np.bincount(table.cell_of_row[rows], minlength=len(table.counts)).astype(np.float64)
