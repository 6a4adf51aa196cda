"""Shares of yes/no outcomes: Wilson and Clopper-Pearson, also with an effective sample size for clusters.

Means of graded scores are in `means`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .counts import Numbers, complete, group_codes
from .quantiles import beta_quantile, normal_quantile, tail_probability
from .stat import Estimand, Sided, Stat, undefined


def _checked(name: str, k: float, n: float) -> Stat | None:
    if n < 0 or k < 0 or k > n:
        raise ValueError(f"{name}: {k} of {n} is not a share.")
    return undefined(name, "n_zero") if n == 0 else None


def wilson(
    k: float,
    n: float,
    level: float = 0.95,
    *,
    name: str = "share",
    sided: Sided = "two",
    estimand: Estimand = "population",
) -> Stat:
    """Share k/n with the Wilson (1927) score interval. k and n may be effective, not whole, numbers.

    n = 0 is undefined with reason `n_zero`.
    """
    refused = _checked(name, k, n)
    if refused:
        return refused
    z = normal_quantile(tail_probability(level, sided))
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Stat(
        name=name, value=p, n=int(n), level=level, sided=sided, method="wilson", estimand=estimand,
        lower=0.0 if k == 0 else max(0.0, centre - half), upper=1.0 if k == n else min(1.0, centre + half),
        details={"k": k},
    )  # fmt: skip


def clopper_pearson(
    k: float,
    n: float,
    level: float = 0.95,
    *,
    name: str = "share",
    sided: Sided = "two",
    estimand: Estimand = "population",
) -> Stat:
    """Share k/n with the exact interval of Clopper and Pearson (1934).

    With whole k, `details.upper_one_sided` is the one-sided upper limit at the same level; for k = 0 it is
    1 - (1-level)^(1/n). Effective (fractional) k and n are those of Korn and Graubard (1998).
    """
    refused = _checked(name, k, n)
    if refused:
        return refused

    def limits(tail: float) -> tuple[float, float]:
        lower = 0.0 if k == 0 else beta_quantile(1 - tail, k, n - k + 1)
        upper = 1.0 if k == n else beta_quantile(tail, k + 1, n - k)
        return lower, upper

    lower, upper = limits(tail_probability(level, sided))
    one_lower, one_upper = limits(level)
    return Stat(
        name=name, value=k / n, n=int(n), lower=lower, upper=upper, level=level, sided=sided,
        method="clopper_pearson", estimand=estimand,
        details={"k": k, "lower_one_sided": one_lower, "upper_one_sided": one_upper},
    )  # fmt: skip


def clustered_share(
    outcomes: Numbers, clusters: Sequence[Any], level: float = 0.95, *, name: str = "share", sided: Sided = "two"
) -> Stat:
    """Share of 1 among clustered 0/1 outcomes: Clopper-Pearson at the effective n (Korn & Graubard 1998)."""
    _, group = group_codes(clusters)
    (values, groups), dropped = complete(outcomes, group.astype(np.float64))
    n = len(values)
    if n == 0:
        return undefined(name, "n_zero", n_dropped=dropped)
    p = float(values.mean())
    sums = np.bincount(groups.astype(np.int64), weights=values - p)
    g = len(np.unique(groups))
    variance = g / max(g - 1, 1) * float(sums @ sums) / n**2
    iid = p * (1 - p) / max(n - 1, 1)
    effective = n / max(1.0, variance / iid) if iid > 0 else float(g)
    stat = clopper_pearson(p * effective, effective, level, name=name, sided=sided)
    return Stat(
        name=name, value=p, n=n, n_dropped=dropped, lower=stat.lower, upper=stat.upper, level=level, sided=sided,
        method="korn_graubard", estimand="population", status="ok" if g >= 10 else "low_precision",
        reason=None if g >= 10 else "few_clusters", details={"n_effective": effective, "n_clusters": g},
    )  # fmt: skip


def clean_cases_needed(cap: float, level: float = 0.95) -> int:
    """How many cases without a single event show a share below `cap` (cap 2%: 149, cap 1%: 299)."""
    if not 0 < cap < 1:
        raise ValueError(f"A cap lies between 0 and 1, not {cap}.")
    return math.ceil(math.log(1 - level) / math.log(1 - cap))
