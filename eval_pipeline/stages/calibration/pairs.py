"""Pairs of a human and a judge score, from wherever they come: the decision with everything shown beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eval_pipeline.stages.calibration.people import agreement
from eval_pipeline.stats import calibration_rule
from eval_pipeline.stats.bias import hit_rates
from eval_pipeline.stats.calibration_rule import MINIMUM_OFF_MODAL, CalibrationResult
from eval_pipeline.stats.counts import Numbers, PairTable, as_floats
from eval_pipeline.stats.stat import Stat
from eval_pipeline.vocabulary import CalibrationDecision

YES = frozenset({"yes", "true", "pass", "correct", "예", "네", "참", "합격", "맞음", "정답"})
NO = frozenset({"no", "false", "fail", "incorrect", "아니오", "아니요", "거짓", "불합격", "틀림", "오답"})
EXIT_CODES = {"pass": 0, "fail": 1, "untested": 3, "inconclusive": 4}
STATISTICS = ("spearman_rho", "kendall_tau_b", "quadratic_weighted_kappa", "bias", "mean_absolute_error",
              "rho_ceiling_by_marginals")  # fmt: skip
LOWEST_BAR = 1e-9
LARGEST = 1e12
"""A cell beyond this is no score."""
FLAT = ("value", "lower", "upper", "n", "status", "reason", "method", "level")


@dataclass(frozen=True, slots=True)
class Bar:
    """When a judge counts as tested. The minima can be raised, not lowered."""

    bar: float = 0.7
    minimum_labels: int = 50
    minimum_off_modal: int = MINIMUM_OFF_MODAL


@dataclass(frozen=True, slots=True)
class PairsReport:
    """A stand-alone calibration.

    Attributes:
        report: what `--json` prints.
        exit_code: 0 pass, 1 fail, 3 untested, 4 inconclusive or provisional.
        plan: what to label next.
    """

    result: CalibrationResult
    report: dict[str, Any]
    exit_code: int
    plan: SamplingPlan


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """What to label next.

    Attributes:
        labels_needed: in all; null when nothing more is needed or the point value is the bar itself.
        labels_missing: of those, how many are still to be made.
        by_level: how they spread over the judge's levels: evenly, since a sample by human level would inflate rho.
    """

    labels_needed: int | None
    labels_missing: int
    by_level: Mapping[float, int]


def as_score(cell: object) -> float | None:
    """A cell of a file as a number: numbers, numerals, yes and no in English and Korean; null for anything else."""
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, str):
        word = cell.strip().casefold()
        if word in YES or word in NO:
            return float(word in YES)
        try:
            cell = float(word)
        except ValueError:
            return None
    return float(cell) if isinstance(cell, (int, float)) and abs(cell) < LARGEST else None


def calibrate_pairs(
    human: Sequence[object],
    judge: Sequence[object],
    *,
    name: str = "judge",
    metric: str | None = None,
    bar: Bar = Bar(),
    attempt: int = 1,
    clusters: Sequence[Any] | None = None,
    annotators: tuple[Sequence[object], Sequence[object]] | None = None,
) -> PairsReport:
    """A judge against people from two columns of cells. A pair with an unusable side is dropped and counted.

    Args:
        human: labels. judge: scores of the same rows. Either may be numbers or yes/no words.
        name: the judge's name. metric: the metric's, null when the file does not say.
        bar: when it counts as tested. attempt: how often this label set was used, this time included.
        clusters: one id per row, where several answers share a question.
        annotators: two further columns with the labels of two people, for the human ceiling.
    """
    columns = [np.array([as_score(cell) for cell in column], dtype=np.float64) for column in (human, judge)]
    (labels, scores), notes = _on_one_scale(*columns)
    result = compare(labels, scores, bar=bar, attempt=attempt, clusters=clusters)
    both = annotators or ([], [])
    agreed = agreement(*([as_score(cell) for cell in column] for column in both))
    report = {
        "judge": name, "metric": metric, "pair_count": result.pair_count, "dropped_count": result.dropped_count,
        **{key: flat_statistic(getattr(result, key)) for key in STATISTICS},
        **{key: flat_statistic(stat) for key, stat in agreed.items()},
        "decision": result.decision, "provisional": result.provisional, "labels_needed": needed(result, bar),
        "reason": result.reason, "bar": bar.bar, "attempt": result.attempt, "label_provenance": "human",
        "warnings": [*result.warnings, *notes],
    }  # fmt: skip
    return PairsReport(result, report, exit_code(result.decision), sampling_plan(result, scores, bar))


def _on_one_scale(human: Numbers, judge: Numbers) -> tuple[tuple[Any, Any], list[str]]:
    """Both columns on [0, 1]: a column outside it is taken as spanning its own scale, which is said in a note."""
    columns, notes = [as_floats(human), as_floats(judge)], []
    outside = [column for column in columns if np.nanmax(column, initial=0) > 1 or np.nanmin(column, initial=0) < 0]
    if not outside:
        return (columns[0], columns[1]), notes
    low, high = min(float(np.nanmin(c)) for c in outside), max(float(np.nanmax(c)) for c in outside)
    notes.append(f"scores from {low:g} to {high:g} were mapped to [0, 1] for bias, error and kappa")
    mapped = [(c - low) / ((high - low) or 1.0) if any(c is one for one in outside) else c for c in columns]
    return (mapped[0], mapped[1]), notes


def compare(
    human: Numbers,
    judge: Numbers,
    *,
    bar: Bar = Bar(),
    attempt: int = 1,
    clusters: Sequence[Any] | None = None,
    contaminated_count: int = 0,
) -> CalibrationResult:
    """The decision rule on pairs on [0, 1]; a pair with a missing side is dropped and counted."""
    result = calibration_rule.calibrate(
        human, judge, bar=max(bar.bar, LOWEST_BAR), minimum_labels=bar.minimum_labels, attempt=attempt,
        clusters=clusters, contaminated_count=contaminated_count,
    )  # fmt: skip
    if result.decision == CalibrationDecision.UNTESTED or result.off_modal_count >= bar.minimum_off_modal:
        return result
    return replace(result, decision="untested", provisional=False, reason="few_off_modal_labels", labels_needed=None)


def exit_code(decision: str) -> int:
    """Of `calibrate`: 0 pass, 1 fail, 3 untested, 4 inconclusive or provisional."""
    return EXIT_CODES[CalibrationDecision(decision).value]


def needed(result: CalibrationResult, bar: Bar) -> int | None:
    """Labels needed in all; with too few off the most frequent one, as many as should bring enough of those."""
    if result.reason != "few_off_modal_labels":
        return result.labels_needed
    return math.ceil(result.pair_count * max(bar.minimum_off_modal, MINIMUM_OFF_MODAL) / result.off_modal_count)


def sampling_plan(result: CalibrationResult, judge: Numbers, bar: Bar = Bar()) -> SamplingPlan:
    """Where the missing labels come from: the same number from each level the judge gives."""
    total = needed(result, bar)
    missing = max(0, (total or 0) - result.pair_count)
    scores = as_floats(judge)
    levels = np.unique(scores[~np.isnan(scores)])
    if not missing or not len(levels):
        return SamplingPlan(total, missing, {})
    if len(levels) > 5:
        levels = np.unique(np.quantile(scores[~np.isnan(scores)], [0.1, 0.3, 0.5, 0.7, 0.9]))
    share, rest = divmod(missing, len(levels))
    return SamplingPlan(total, missing, {float(level): share + (i < rest) for i, level in enumerate(levels)})


def flat_statistic(stat: Stat) -> dict[str, Any]:
    """The eight keys of a statistic in machine-readable output."""
    return {key: getattr(stat, key) for key in FLAT}


def flat(result: CalibrationResult, bar: Bar) -> dict[str, Any]:
    """The result's numbers under the names of the `calibrations` columns."""
    rho = result.spearman_rho
    return {
        "pair_count": result.pair_count,
        "dropped_count": result.dropped_count,
        "spearman_rho": rho.value,
        "rho_lower": rho.lower,
        "rho_upper": rho.upper,
        "rho_status": rho.status,
        "kendall_tau_b": result.kendall_tau_b.value,
        "quadratic_weighted_kappa": result.quadratic_weighted_kappa.value,
        "bias": result.bias.value,
        "mean_absolute_error": result.mean_absolute_error.value,
        "rho_ceiling_by_marginals": result.rho_ceiling_by_marginals.value,
        "labels_needed": needed(result, bar),
    }


def statistics(result: CalibrationResult) -> dict[str, Any]:
    """Every statistic as a JSON object, and the warnings."""
    return {name: getattr(result, name).to_dict() for name in STATISTICS} | {
        "warnings": list(result.warnings), "off_modal_count": result.off_modal_count, "level": result.level,
    }  # fmt: skip


def confusion(human: Numbers, judge: Numbers, cut: float = 0.5) -> dict[str, Any]:
    """Counts by level where both have few, and the hit rates at a cut (positive: the human label reaches it)."""
    table = PairTable.from_rows(human, judge)
    rates = hit_rates(table, cut=cut)
    cells = zip(table.x.tolist(), table.y.tolist(), table.counts.tolist(), strict=True)
    return {
        "cut": cut,
        "true_positive_rate": rates.true_positive_rate.to_dict(),
        "true_negative_rate": rates.true_negative_rate.to_dict(),
        "confusion": [{"human": h, "judge": j, "count": int(n)} for h, j, n in cells]
        if len(table.counts) <= 64
        else None,
    }
