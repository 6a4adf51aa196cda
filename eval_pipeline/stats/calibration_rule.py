"""Whether a judge may be trusted: the decision on Spearman's rho against human labels, and its refusals.

Which labels count (human, not used in prompts or tuning) is the caller's knowledge; it says how many did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .agreement import quadratic_weighted_kappa
from .bias import mean_absolute_error, mean_bias
from .ceilings import ceiling_by_marginals, labels_needed
from .correlation import kendall_tau_b, spearman
from .counts import Numbers, PairTable, as_floats, as_pairs, group_codes
from .quantiles import chi2_tail
from .stat import Stat, undefined

CalibrationVerdict = Literal["pass", "fail", "inconclusive", "untested"]

MINIMUM_LABELS = 50
MINIMUM_OFF_MODAL = 10
BIAS_WARNING = 0.10
KAPPA_WARNING = 0.40


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The decision on one judge and metric.

    Attributes:
        decision: pass: lower limit above the bar. fail: upper limit below it. inconclusive: neither. untested: refused.
        provisional: Inconclusive with the point value at or above the bar: usable and flagged, not for releases.
        reason: Why it is untested, or inconclusive; None otherwise.
        level: One-sided level of the limits; 1 - alpha/k on the k-th use of the same labels.
        labels_needed: Labels that would settle it if the point value is right, when inconclusive.
    """

    decision: CalibrationVerdict
    provisional: bool
    reason: str | None
    bar: float
    level: float
    attempt: int
    pair_count: int
    dropped_count: int
    off_modal_count: int
    labels_needed: int | None
    spearman_rho: Stat
    kendall_tau_b: Stat
    quadratic_weighted_kappa: Stat
    bias: Stat
    mean_absolute_error: Stat
    rho_ceiling_by_marginals: Stat
    warnings: tuple[str, ...]


def off_modal_count(human: Numbers | PairTable, judge: Numbers | None = None) -> int:
    """Complete pairs whose human label is not the most frequent one."""
    table = human if isinstance(human, PairTable) else as_pairs(human, judge)
    return int(table.n - table.x_counts.max(initial=0.0))


def calibrate(
    human: Numbers | PairTable,
    judge: Numbers | None = None,
    *,
    bar: float = 0.7,
    level: float = 0.95,
    minimum_labels: int = MINIMUM_LABELS,
    attempt: int = 1,
    contaminated_count: int = 0,
    clusters: Sequence[Any] | None = None,
) -> CalibrationResult:
    """Test a judge against people.

    Args:
        human: Human scores (None = missing), or a `PairTable` (x human, y judge).
        judge: Judge scores of the same rows.
        bar: rho that the one-sided lower limit must exceed.
        level: One-sided level of a first attempt.
        minimum_labels: Complete pairs below which nothing is tested; never under 50.
        attempt: How many times these labels have been used, this time included; the k-th is tested at alpha/k.
        contaminated_count: Labels known to have been used in the judge's prompt or in tuning; any refuses.
        clusters: One id per row, when several answers share a question.
    """
    if not 0 < bar < 1:
        raise ValueError(f"The bar lies between 0 and 1, not {bar}.")
    if attempt < 1:
        raise ValueError(f"An attempt counts from 1, not {attempt}.")
    table = as_pairs(human, judge)
    level = 1 - (1 - level) / attempt
    rho = spearman(table, level=level, sided="one", clusters=clusters)
    kappa = quadratic_weighted_kappa(table, level=level, sided="one", clusters=clusters)
    bias = mean_bias(table)
    off_modal = off_modal_count(table)
    reason = _refusal(table, rho, off_modal, max(minimum_labels, MINIMUM_LABELS), contaminated_count)
    decision, provisional, needed = ("untested", False, None) if reason else _decide(rho, bar)
    if decision == "inconclusive":
        needed, reason = labels_needed(rho, bar, level), "limits_include_bar"
    elif reason == "n_too_small":
        needed = max(minimum_labels, MINIMUM_LABELS)
    return CalibrationResult(
        decision=decision, provisional=provisional, reason=reason, bar=bar, level=level, attempt=attempt,
        pair_count=table.n, dropped_count=table.n_dropped, off_modal_count=off_modal, labels_needed=needed,
        spearman_rho=rho, kendall_tau_b=kendall_tau_b(table, level=level, sided="one", clusters=clusters),
        quadratic_weighted_kappa=kappa, bias=bias, mean_absolute_error=mean_absolute_error(table),
        rho_ceiling_by_marginals=ceiling_by_marginals(table), warnings=_warnings(bias, kappa),
    )  # fmt: skip


def _refusal(table: PairTable, rho: Stat, off_modal: int, minimum: int, contaminated: int) -> str | None:
    if contaminated > 0:
        return "labels_used_in_tuning"
    if table.n < minimum:
        return "n_too_small"
    if off_modal == 0:
        return "constant_labels"
    if off_modal < MINIMUM_OFF_MODAL:
        return "few_off_modal_labels"
    if rho.value is None:
        return "constant_judge" if len(table.y_levels) < 2 else rho.reason
    if rho.lower is None or rho.upper is None or rho.details.get("se_z") is None:
        return "no_interval"
    return None


def _decide(rho: Stat, bar: float) -> tuple[CalibrationVerdict, bool, None]:
    assert rho.value is not None and rho.lower is not None and rho.upper is not None
    if rho.lower > bar:
        return "pass", False, None
    if rho.upper < bar:
        return "fail", False, None
    return "inconclusive", rho.value >= bar, None


def _warnings(bias: Stat, kappa: Stat) -> tuple[str, ...]:
    found = []
    if bias.value is not None and abs(bias.value) > BIAS_WARNING:
        found.append(f"the judge is {abs(bias.value):.2f} too {'high' if bias.value > 0 else 'low'} on average")
    if kappa.value is not None and kappa.value < KAPPA_WARNING:
        found.append(f"quadratic weighted kappa is {kappa.value:.2f}: the levels disagree even where the ranks agree")
    return tuple(found)


def calibrate_strata(
    human: Numbers, judge: Numbers, strata: Sequence[Any], level: float = 0.95
) -> dict[str, tuple[Stat, Stat]]:
    """rho and mean bias by stratum; rho only with 30 pairs and 5 off-modal labels. Strata warn, they never gate."""
    h, j = as_floats(human), as_floats(judge)
    names, group = group_codes(strata)
    result: dict[str, tuple[Stat, Stat]] = {}
    for position, stratum in enumerate(names):
        table = PairTable.from_rows(h[group == position], j[group == position])
        enough = table.n >= 30 and off_modal_count(table) >= 5
        rho = (
            spearman(table, level=level)
            if enough
            else undefined("spearman_rho", "n_too_small", n=table.n, n_dropped=table.n_dropped)
        )
        result[str(stratum)] = (rho, mean_bias(table, level))
    return result


def heterogeneity(correlations: Sequence[Stat]) -> Stat:
    """Whether rho differs between strata: Q = sum w (z - zbar)^2 with w = 1/se_z^2, against chi-squared."""
    parts = [(s.details["z"], s.details["se_z"]) for s in correlations if s.value is not None and s.details.get("se_z")]
    name, n = "rho_heterogeneity", sum(s.n for s in correlations if s.value is not None)
    if len(parts) < 2:
        return undefined(name, "fewer_than_two_strata", n=n)
    z, se = (np.array(column) for column in zip(*parts, strict=True))
    weights = 1 / se**2
    centre = float(weights @ z) / float(weights.sum())
    q = float(weights @ (z - centre) ** 2)
    return Stat(
        name=name, value=q, n=n, p=min(1.0, chi2_tail(q, len(parts) - 1)), method="cochran_q", estimand="population",
        details={"df": len(parts) - 1},
    )  # fmt: skip
