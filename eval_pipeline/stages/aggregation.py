"""Scores to summaries: each metric over each stratum and over all, never without counts, bounds and the worst 10 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eval_pipeline.stats.means import mean_interval, stratified_mean
from eval_pipeline.stats.rates import wilson
from eval_pipeline.stats.tails import catastrophic_share, cvar, cvar_lower_limit, low_quantile, worst_items
from eval_pipeline.tables import SUMMARIES
from eval_pipeline.vocabulary import SCORED_STATUSES, NoResponsePolicy, ScoreStatus

ALL = "all"
COUNTED = {
    "scored_count": [status.value for status in SCORED_STATUSES],
    "no_response_count": [ScoreStatus.NO_RESPONSE.value],
    "invalid_count": [ScoreStatus.INVALID.value],
    "no_claims_count": [ScoreStatus.NO_CLAIMS.value],
    "not_applicable_count": [ScoreStatus.NOT_APPLICABLE.value],
    "not_asked_count": [ScoreStatus.NOT_ASKED.value],
}
"""The six counts that add up to `item_count`, with the statuses each counts."""


@dataclass(frozen=True, slots=True)
class MetricPolicy:
    """How one metric is summarised."""

    no_response: NoResponsePolicy = NoResponsePolicy.ZERO
    catastrophic: float = 0.0


def summarise(
    scores: pl.DataFrame,
    *,
    evaluation_id: str,
    policies: Mapping[str, MetricPolicy] | None = None,
    weights: Mapping[str, float] | None = None,
) -> pl.DataFrame:
    """`summaries` rows from the `scores` rows of one evaluation.

    Args:
        policies: by metric; the default policy for the others.
        weights: declared weight by stratum, for the weighted mean of the whole.
    """
    rows = []
    for (metric,), of_metric in sorted(scores.group_by("metric"), key=lambda pair: str(pair[0][0])):
        policy = (policies or {}).get(str(metric), MetricPolicy())
        whole = _summary(of_metric, policy) | {"stratum": ALL, "weighted_mean": _weighted(of_metric, policy, weights)}
        strata = [
            _summary(part, policy) | {"stratum": stratum, "weighted_mean": None}
            for (stratum,), part in sorted(of_metric.group_by("stratum"), key=lambda pair: str(pair[0][0]))
        ]
        rows += [row | {"evaluation_id": evaluation_id, "metric": metric} for row in (whole, *strata)]
    return SUMMARIES.frame(rows)


def valued(scores: pl.DataFrame, policy: MetricPolicy) -> pl.DataFrame:
    """The rows that enter the mean: scored ones, and failed responses where they count as zero."""
    statuses = COUNTED["scored_count"] + (COUNTED["no_response_count"] if policy.no_response == NoResponsePolicy.ZERO else [])
    return scores.filter(pl.col("status").is_in(statuses) & pl.col("value").is_not_null())


def _summary(scores: pl.DataFrame, policy: MetricPolicy) -> dict[str, Any]:
    by_status = dict(scores.group_by("status").len().iter_rows())
    counts = {name: sum(by_status.get(status, 0) for status in statuses) for name, statuses in COUNTED.items()}
    inside = valued(scores, policy)
    values = inside["value"].to_numpy()
    # A cluster of one says nothing that the row does not; only shared ids make rows dependent.
    shared = inside["cluster_id"].drop_nulls()
    clusters = None
    if shared.len() > shared.n_unique():
        clusters = inside.select(pl.coalesce("cluster_id", pl.concat_str(pl.lit("\x00"), "item_id")))["cluster_id"].to_list()
    mean = mean_interval(values, clusters=clusters)
    lower, upper = _bounds(inside, scores)
    tail = cvar_lower_limit(values)
    bad = catastrophic_share(values, policy.catastrophic)
    asked = counts["scored_count"] + counts["invalid_count"]
    invalid = wilson(counts["invalid_count"], asked)
    return {
        "item_count": scores.height,
        **counts,
        "single_count": by_status.get(ScoreStatus.SCORED_SINGLE.value, 0),
        "mean": mean.value,
        "mean_lower_bound": lower,
        "mean_upper_bound": upper,
        "mean_interval_lower": mean.lower,
        "mean_interval_upper": mean.upper,
        "mean_status": mean.status,
        "mean_reason": mean.reason,
        "q10": low_quantile(values).value,
        "cvar10": tail.value,
        "cvar10_lower": tail.lower,
        "cvar10_missing_zero": cvar([*values, *([0.0] * counts["invalid_count"])]).value,
        "cvar10_status": tail.status,
        "catastrophic_share": bad.value,
        "catastrophic_share_upper": bad.upper,
        "invalid_share": invalid.value,
        "invalid_share_upper": invalid.upper,
        "worst_item_ids": list(_worst(inside, scores)),
    }


def _missing(scores: pl.DataFrame) -> pl.DataFrame:
    """Items whose value is unknown but lies somewhere: invalid and not asked."""
    return scores.filter(pl.col("status").is_in([ScoreStatus.INVALID.value, ScoreStatus.NOT_ASKED.value]))


def _bounds(inside: pl.DataFrame, scores: pl.DataFrame) -> tuple[float | None, float | None]:
    """Manski bounds: the mean with every missing grade the worst, and the best."""
    both = pl.concat([inside, _missing(scores)])
    if both.is_empty():
        return None, None
    return both["lower"].fill_null(0.0).mean(), both["upper"].fill_null(1.0).mean()  # pyright: ignore[reportReturnType]


def _worst(inside: pl.DataFrame, scores: pl.DataFrame) -> Sequence[str]:
    ranked = pl.concat([_missing(scores).with_columns(pl.lit(None, pl.Float64).alias("value")), inside])
    return worst_items(ranked["item_id"].to_list(), ranked["value"].to_list()).ids if ranked.height else ()  # pyright: ignore


def _weighted(scores: pl.DataFrame, policy: MetricPolicy, weights: Mapping[str, float] | None) -> float | None:
    if not weights:
        return None
    inside = valued(scores, policy)
    return stratified_mean(inside["value"].to_list(), inside["stratum"].to_list(), weights).value


def accounting_violations(summaries: pl.DataFrame) -> list[str]:
    """Where items are not all accounted for; empty always, unless the pipeline has a defect."""
    wrong = summaries.filter(pl.col("item_count") != pl.sum_horizontal(*COUNTED))
    return [f"{metric} / {stratum}" for metric, stratum in wrong.select("metric", "stratum").iter_rows()]
