"""What rho can at most reach, and how many labels a study needs: planning numbers printed next to a correlation."""

from __future__ import annotations

import math

import numpy as np

from .correlation import spearman_value
from .counts import Counts, Numbers, PairTable, as_pairs
from .quantiles import normal_quantile, t_quantile
from .stat import Stat, undefined


def ceiling_by_marginals(human: Numbers | PairTable, judge: Numbers | None = None) -> Stat:
    """rho of the comonotone coupling of the two marginals: the best a judge with this mix of grades could reach.

    A low ceiling says "rewrite the scale", a low rho under a high ceiling says "rewrite the rubric".
    """
    table = as_pairs(human, judge)
    name = "rho_ceiling_by_marginals"
    if table.n < 3:
        return undefined(name, "n_too_small", n=table.n, n_dropped=table.n_dropped)
    value = spearman_value(comonotone(table.x_sample(), table.y_sample()))
    if value is None:
        return undefined(name, "constant_input", n=table.n, n_dropped=table.n_dropped)
    return Stat(
        name=name, value=value, n=table.n, n_dropped=table.n_dropped, method="comonotone_coupling", estimand="fixed_set"
    )


def comonotone(x: Counts, y: Counts) -> PairTable:
    """Both samples sorted and paired by rank."""
    x_ends, y_ends = np.cumsum(x.counts), np.cumsum(y.counts)
    ends = np.unique(np.concatenate([x_ends, y_ends]))
    counts = np.diff(ends, prepend=0.0)
    middle = ends - counts / 2
    return PairTable(x.levels, y.levels, np.searchsorted(x_ends, middle), np.searchsorted(y_ends, middle), counts)


def ceiling_by_human_noise(human_agreement: Stat) -> Stat:
    """sqrt of the human reliability (Spearman 1904), from the kappa of two people on at least 30 shared items."""
    name, n = "rho_ceiling_by_human_noise", human_agreement.n
    if human_agreement.value is None:
        return undefined(name, human_agreement.reason or "undefined", n=n)
    if n < 30:
        return undefined(name, "n_too_small", n=n)
    if human_agreement.value <= 0:
        return undefined(name, "no_human_agreement", n=n)

    def root(value: float | None) -> float | None:
        return None if value is None else math.sqrt(min(1.0, max(0.0, value)))

    return Stat(
        name=name, value=math.sqrt(min(1.0, human_agreement.value)), n=n, lower=root(human_agreement.lower),
        upper=root(human_agreement.upper), level=human_agreement.level, sided=human_agreement.sided,
        method="spearman_attenuation", estimand="population",
    )  # fmt: skip


def labels_needed(rho: Stat, bar: float, level: float = 0.95) -> int | None:
    """Labels that settle the question if the point value is right: n (t se_z / (atanh rho - atanh bar))^2.

    None where the point value is the bar itself, or has no standard error.
    """
    z, se = rho.details.get("z"), rho.details.get("se_z")
    if rho.value is None or z is None or se is None or abs(z - math.atanh(bar)) < 1e-9:
        return None
    quantile = t_quantile(level, max(rho.n - 1, 1))
    needed = rho.n * (quantile * se / (z - math.atanh(bar))) ** 2
    return None if needed > 1e9 else max(rho.n, math.ceil(needed))


def labels_for_power(rho: float, bar: float = 0.7, alpha: float = 0.05, power: float = 0.80) -> int:
    """Labels with which a judge of true `rho` passes the bar with `power` (balanced labels only).

    Bonett-Wright, with the mean of the variances at the bar and at rho.

    For a bar of .7: 703, 152, 57, 26 labels at rho .75, .80, .85, .90.
    """
    if not bar < rho < 1:
        raise ValueError(f"rho lies between the bar {bar} and 1, not {rho}.")
    quantiles = normal_quantile(1 - alpha) + normal_quantile(power)
    return math.ceil(3 + (1 + (rho**2 + bar**2) / 4) * (quantiles / (math.atanh(rho) - math.atanh(bar))) ** 2)


def labels_for_width(rho: float, width: float, alpha: float = 0.05) -> int:
    """Labels with which the Bonett-Wright interval is at most `width` wide (statpsych `size.ci.spear`)."""
    if not (-1 < rho < 1 and width > 0):
        raise ValueError(f"rho lies in (-1, 1) and the width is positive: {rho}, {width}.")
    quantile = normal_quantile(1 - alpha / 2)
    first = math.ceil(4 * (1 + rho**2 / 2) * (1 - rho**2) ** 2 * (quantile / width) ** 2 + 3)
    half = quantile * math.sqrt((1 + rho**2 / 2) / (first - 3))
    reached = math.tanh(math.atanh(rho) + half) - math.tanh(math.atanh(rho) - half)
    return math.ceil((first - 3) * (reached / width) ** 2 + 3)
