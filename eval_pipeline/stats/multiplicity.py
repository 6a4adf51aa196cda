"""Several tests at once: Holm, and the choice of the cheapest judge that is really above the bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .counts import Numbers, complete
from .quantiles import normal_cdf, t_cdf
from .stat import Stat, undefined


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm (1979) step-down adjusted p values, in the given order. An undefined p (None) stays None and counts in m."""
    m = len(p_values)
    adjusted: list[float | None] = [None] * m
    running = 0.0
    defined = sorted((p, position) for position, p in enumerate(p_values) if p is not None)
    for rank, (p, position) in enumerate(defined):
        if not 0 <= p <= 1:
            raise ValueError(f"A p value lies in [0, 1], not {p}.")
        running = max(running, min(1.0, (m - rank) * p))
        adjusted[position] = running
    return adjusted


@dataclass(frozen=True, slots=True)
class JudgeCandidate:
    """A judge, its rho on the labels (a `Stat` with z and se_z), its cost per 1,000 scored cases.

    `blocked_by` says why it may not be picked whatever its rho: a bias warning, self-evaluation, an untested metric.
    """

    name: str
    rho: Stat
    cost_per_1k: float
    blocked_by: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The cheapest judge above the bar (None when none is), and the Holm-adjusted p value of every candidate."""

    name: str | None
    reason: str
    nearest: str | None
    adjusted_p: dict[str, float | None]


def above_bar_p(rho: Stat, bar: float) -> float | None:
    """One-sided p of rho <= bar, from (z - atanh bar) / se_z with the degrees of freedom of the interval."""
    z, se, df = (rho.details.get(key) for key in ("z", "se_z", "df"))
    if rho.value is None or z is None or not se:
        return None
    score = (math.atanh(bar) - z) / se
    return normal_cdf(score) if df is None else t_cdf(score, df)


def cheapest_judge(candidates: Sequence[JudgeCandidate], bar: float = 0.7, alpha: float = 0.05) -> JudgeChoice:
    """Holm over all candidates, then the lowest cost; within 5% of it, the higher lower limit.

    Without Holm, six judges exactly at the bar produce a passer in 20% of studies.
    """
    if not candidates:
        return JudgeChoice(None, "no candidates", None, {})
    adjusted = holm([above_bar_p(candidate.rho, bar) for candidate in candidates])
    table = {candidate.name: p for candidate, p in zip(candidates, adjusted, strict=True)}
    passers = [
        candidate
        for candidate, p in zip(candidates, adjusted, strict=True)
        if p is not None and p < alpha and candidate.blocked_by is None
    ]
    if not passers:
        measured = [candidate for candidate in candidates if candidate.rho.lower is not None]
        nearest = max(measured, key=lambda c: (c.blocked_by is None, c.rho.lower), default=None)
        return JudgeChoice(None, "no judge is above the bar", nearest.name if nearest else None, table)
    lowest = min(candidate.cost_per_1k for candidate in passers)
    near = [candidate for candidate in passers if candidate.cost_per_1k <= lowest * 1.05]
    best = max(near, key=lambda candidate: (candidate.rho.lower or -1.0, -candidate.cost_per_1k))
    return JudgeChoice(
        best.name,
        "cheapest above the bar" if len(near) == 1 else "highest lower limit within 5% of the cheapest",
        best.name,
        table,
    )


def cost_per_1k(cost: float, scored_count: int) -> float | None:
    """Cost per 1,000 scored cases, retries and invalid cases included; None without a scored case."""
    return cost / scored_count * 1000 if scored_count > 0 else None


def panel_size(errors: Sequence[Numbers]) -> Stat:
    """Effective number of judges in a panel, k / (1 + (k-1) rbar), with rbar the mean correlation of judge - human.

    Args:
        errors: One row per judge: judge - human on the same cases; cases missing for one judge are dropped.
    """
    name, k = "panel_effective_judges", len(errors)
    if k < 2:
        return undefined(name, "n_too_small", n=0)
    columns, dropped = complete(*errors)
    n = len(columns[0])
    if n < 3:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    if min(float(column.std()) for column in columns) < 1e-12:
        return undefined(name, "constant_input", n=n, n_dropped=dropped)
    correlations = np.corrcoef(np.stack(columns))
    mean = float((correlations.sum() - k) / (k * (k - 1)))
    effective = k / max(1 + (k - 1) * mean, 1e-9)
    return Stat(
        name=name, value=min(effective, 1e6), n=n, n_dropped=dropped, method="mean_error_correlation",
        estimand="population", notes=("a further judge adds under 10%",) if mean > 0.6 else (),
        details={"mean_error_correlation": mean, "judges": k},
    )  # fmt: skip
