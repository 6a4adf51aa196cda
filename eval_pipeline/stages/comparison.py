"""Two evaluations paired by unchanged items: what moved, by how much, and which items."""

from __future__ import annotations

from typing import Any

import polars as pl

from eval_pipeline.stats.paired import paired_difference


def compare(old: pl.DataFrame, new: pl.DataFrame) -> list[dict[str, Any]]:
    """One row per metric of either side, from their `scores` rows.

    `difference` is mean(new - old) with its 90 % Bonett-Price limits, null when no item is shared and unchanged.
    """
    metrics = sorted(set(old["metric"]) | set(new["metric"]))
    return [_compare(metric, *(side.filter(pl.col("metric") == metric) for side in (old, new))) for metric in metrics]


def _compare(metric: str, old: pl.DataFrame, new: pl.DataFrame) -> dict[str, Any]:
    joined = old.join(new, on=["item_id", "item_sha256"], how="inner", suffix="_new").sort("item_id")
    both = joined.drop_nulls(["value", "value_new"])
    change = both["value_new"] - both["value"]
    effect = paired_difference(both["value"].to_list(), both["value_new"].to_list(), 0.90) if both.height else None
    failed = joined.filter((pl.col("value") >= 0.5) & (pl.col("value_new").is_null() | (pl.col("value_new") < 0.5)))
    return {
        "metric": metric,
        "shared_count": both.height,
        "only_old_count": old.height - joined.height,
        "only_new_count": new.height - joined.height,
        "lost_grade_count": joined.height - both.height,
        "difference": effect.value if effect else None,
        "lower": effect.lower if effect else None,
        "upper": effect.upper if effect else None,
        "better_count": int((change > 0).sum()),
        "worse_count": int((change < 0).sum()),
        "newly_failed": failed["item_id"].to_list(),
        "is_same_judge": set(old["judge_key"]) == set(new["judge_key"]),
    }
