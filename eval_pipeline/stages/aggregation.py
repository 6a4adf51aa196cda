"""Scores to summaries: each metric over each stratum and over all, never without counts, bounds and the worst 10 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eval_pipeline.stats.counts import Counts, Ints, as_counts
from eval_pipeline.stats.means import mean_interval, stratified_mean
from eval_pipeline.stats.rates import clustered_share, wilson
from eval_pipeline.stats.stat import Stat
from eval_pipeline.stats.tails import catastrophic_share, cvar, cvar_lower_limit, low_quantile
from eval_pipeline.tables import SUMMARIES
from eval_pipeline.vocabulary import SCORED_STATUSES, NoResponsePolicy, ScoreStatus

ALL = "all"
WORST_CAP = 50
"""At most this many worst items are listed, ties at the cut included."""
COUNTED = {
    "scored_count": [status.value for status in SCORED_STATUSES],
    "no_response_count": [ScoreStatus.NO_RESPONSE.value],
    "invalid_count": [ScoreStatus.INVALID.value],
    "no_claims_count": [ScoreStatus.NO_CLAIMS.value],
    "not_applicable_count": [ScoreStatus.NOT_APPLICABLE.value],
    "not_asked_count": [ScoreStatus.NOT_ASKED.value],
}
"""The six counts that add up to `item_count`, with the statuses each counts."""
UNKNOWN = (ScoreStatus.INVALID.value, ScoreStatus.NOT_ASKED.value)
"""Statuses of items whose value is unknown but lies somewhere in [0, 1]."""


@dataclass(frozen=True, slots=True)
class MetricPolicy:
    """How one metric is summarised.

    Attributes:
        catastrophic: values at or below it count as catastrophic.
    """

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
        scores: rows of `scores`.
        evaluation_id: goes into every row.
        policies: by metric; the default policy for the others.
        weights: declared weight by stratum, for the weighted mean of the whole; a stratum without a scored item makes
            it undefined.
    """
    rows = []
    needed = scores.select("metric", "stratum", "item_id", "cluster_id", "status", "value", "lower", "upper")
    for metric, of_metric in _parts(needed, "metric"):
        policy = (policies or {}).get(metric, MetricPolicy())
        whole = _summary(of_metric, policy) | {"stratum": ALL, "weighted_mean": _weighted(of_metric, policy, weights)}
        strata = [
            _summary(part, policy) | {"stratum": stratum, "weighted_mean": None}
            for stratum, part in _parts(of_metric, "stratum")
            if stratum != ALL  # A stratum of that name cannot be told from the whole; its items are in the whole.
        ]
        rows += [row | {"evaluation_id": evaluation_id, "metric": metric} for row in (whole, *strata)]
    return SUMMARIES.frame(rows)


def _parts(frame: pl.DataFrame, column: str) -> list[tuple[str, pl.DataFrame]]:
    parts = frame.partition_by(column, as_dict=True, maintain_order=True)
    return sorted(((str(key[0]), part) for key, part in parts.items()), key=lambda part: part[0])


def valued(scores: pl.DataFrame, policy: MetricPolicy) -> pl.DataFrame:
    """The rows that enter the mean: scored ones, and failed responses where they count as zero."""
    zero = COUNTED["no_response_count"] if policy.no_response == NoResponsePolicy.ZERO else []
    return scores.filter(pl.col("status").is_in(COUNTED["scored_count"] + zero) & pl.col("value").is_not_null())


def _summary(scores: pl.DataFrame, policy: MetricPolicy) -> dict[str, Any]:
    by_status = dict(scores.group_by("status").len().iter_rows())
    counts = {name: sum(by_status.get(status, 0) for status in statuses) for name, statuses in COUNTED.items()}
    inside = valued(scores, policy)
    values = inside["value"].to_numpy()
    sample, clusters = as_counts(values), _clusters(inside)
    mean = mean_interval(values if clusters is not None else sample, clusters=clusters)
    unknown = scores.filter(pl.col("status").is_in(UNKNOWN))
    lower, upper = _bounds(inside, unknown)
    tail = cvar_lower_limit(sample)
    bad = _catastrophic(sample, inside, clusters, policy.catastrophic)
    invalid = wilson(counts["invalid_count"], counts["scored_count"] + counts["invalid_count"])
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
        "mean_reason": "all_invalid" if mean.value is None and unknown.height else mean.reason,
        "q10": low_quantile(sample).value,
        "cvar10": tail.value,
        "cvar10_lower": tail.lower,
        "cvar10_missing_zero": cvar(_with_zeros(sample, counts["invalid_count"])).value,
        "cvar10_status": tail.status,
        "catastrophic_share": bad.value,
        "catastrophic_share_upper": bad.upper,
        "invalid_share": invalid.value,
        "invalid_share_upper": invalid.upper,
        "worst_item_ids": _worst(inside, unknown),
    }


def _clusters(inside: pl.DataFrame) -> Ints | None:
    """Cluster number of each row, or null: a cluster of one says nothing that the row does not."""
    shared = inside["cluster_id"].drop_nulls()
    if shared.len() == shared.n_unique():
        return None
    own = pl.when(pl.col("cluster_id").is_null()).then(pl.row_index()).rank("dense")
    numbers = inside.select(pl.col("cluster_id").rank("dense").alias("shared"), own.alias("own"))
    most = shared.n_unique()
    return numbers.select(pl.coalesce("shared", pl.col("own") + most).cast(pl.Int64)).to_series().to_numpy()


def _with_zeros(sample: Counts, count: int) -> Counts:
    return sample.with_value(0.0, count) if count else sample


def _catastrophic(sample: Counts, inside: pl.DataFrame, clusters: Ints | None, cut: float) -> Stat:
    if clusters is None:
        return catastrophic_share(sample, cut)
    outcomes = (inside["value"] <= cut).cast(pl.Float64).to_numpy()
    return clustered_share(outcomes, clusters, name="catastrophic_share", sided="one")  # pyright: ignore[reportArgumentType]


def _bounds(inside: pl.DataFrame, unknown: pl.DataFrame) -> tuple[float | None, float | None]:
    """Manski bounds: the mean with every missing grade the worst, and the best."""
    both = pl.concat([inside, unknown])
    if both.is_empty():
        return None, None
    lower, upper = pl.coalesce("lower", "value", pl.lit(0.0)).mean(), pl.coalesce("upper", "value", pl.lit(1.0)).mean()
    return both.select(lower.alias("lower"), upper.alias("upper")).row(0)


def _worst(inside: pl.DataFrame, unknown: pl.DataFrame) -> Sequence[str]:
    """Ids of the worst 10 %, unknown ones first: unknown is worse than bad. Ties at the cut count too."""
    height = inside.height + unknown.height
    if not height:
        return []
    first = unknown["item_id"].sort().head(WORST_CAP).to_list()
    left = -(-height // 10) - unknown.height
    if left <= 0 or len(first) == WORST_CAP:
        return first
    cut = inside["value"].bottom_k(left).max()
    reached = inside.filter(pl.col("value") <= cut).select("value", "item_id")
    ranked = reached.bottom_k(WORST_CAP, by=["value", "item_id"]).sort("value", "item_id")
    return [*first, *ranked["item_id"].to_list()][:WORST_CAP]


def _weighted(scores: pl.DataFrame, policy: MetricPolicy, weights: Mapping[str, float] | None) -> float | None:
    """Mean over strata by declared weights; from stratum means, since only the value is kept."""
    if not weights:
        return None
    inside = valued(scores, policy)
    means = dict(inside.group_by("stratum").agg(pl.col("value").mean()).iter_rows())
    return stratified_mean(list(means.values()), list(means), weights).value


def accounting_violations(summaries: pl.DataFrame) -> list[str]:
    """Where items are not all accounted for; empty always, unless the pipeline has a defect."""
    wrong = summaries.filter(pl.col("item_count") != pl.sum_horizontal(*COUNTED))
    found = [f"{metric} / {stratum}" for metric, stratum in wrong.select("metric", "stratum").iter_rows()]
    parts = pl.col("item_count").filter(pl.col("stratum") != ALL).sum()
    whole = pl.col("item_count").filter(pl.col("stratum") == ALL).sum()
    # A stratum called `all` has no row of its own, so the parts may be fewer, never more.
    by_metric = summaries.group_by("metric").agg(parts.alias("parts"), whole.alias("whole"))
    return found + [
        f"{name} / strata" for name in by_metric.filter(pl.col("parts") > pl.col("whole"))["metric"].to_list()
    ]
