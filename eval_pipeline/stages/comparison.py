"""Two evaluations paired by unchanged items: what moved, by how much, and which items. The gate decides elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from eval_pipeline.stats.means import change_hidden_by_pooling
from eval_pipeline.stats.multiplicity import holm
from eval_pipeline.stats.paired import minimum_detectable_effect, paired_difference
from eval_pipeline.stats.permutation import sign_flip

LEVEL = 0.05
FAILED_BELOW = 0.5
"""An item fails below this; newly failed when it did not before."""


def compare(old: pl.DataFrame, new: pl.DataFrame) -> list[dict[str, Any]]:
    """One row per metric of either side, from their `scores` rows.

    `difference` is mean(new - old) with its 90 % Bonett-Price limits, null when no item is shared and unchanged; `p` is
    the two-sided sign-flip test, `detectable` the smallest drop these items would show. A metric under two judges
    (`is_same_judge` false) is two series: its difference says nothing of the system.
    """
    metrics = sorted(set(old["metric"]) | set(new["metric"]))
    return [_compare(metric, *(side.filter(pl.col("metric") == metric) for side in (old, new))) for metric in metrics]


def overall(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the metrics say together: change, better, worse, metric_count.

    Metrics under two judges are left out; those named moved after Holm's correction at 5 % over the others.
    """
    tested = [row for row in rows if row["is_same_judge"] and row["p"] is not None]
    adjusted = holm([row["p"] for row in tested])
    moved = [row for row, p in zip(tested, adjusted, strict=True) if p is not None and p <= LEVEL]
    better = [row["metric"] for row in moved if row["difference"] > 0]
    worse = [row["metric"] for row in moved if row["difference"] < 0]
    if better and worse:
        change = "mixed"
    elif better or worse:
        change = "better" if better else "worse"
    else:
        change = "no_clear_change" if tested else "nothing_shared"
    return {"change": change, "better": better, "worse": worse, "metric_count": len(tested)}


def _compare(metric: str, old: pl.DataFrame, new: pl.DataFrame) -> dict[str, Any]:
    joined = old.join(new, on=["item_id", "item_sha256"], how="inner", suffix="_new").sort("item_id")
    both = joined.drop_nulls(["value", "value_new"]).with_columns(change=pl.col("value_new") - pl.col("value"))
    before, after = both["value"].to_numpy(), both["value_new"].to_numpy()
    effect, test = paired_difference(before, after, 0.90), sign_flip(before, after)
    was, now = pl.col("value") >= FAILED_BELOW, pl.col("value_new") >= FAILED_BELOW
    worst = both.filter(pl.col("change") < 0).sort("change", "item_id")["item_id"].to_list()
    strata = _strata(both)
    changes = {row["stratum"]: row["difference"] for row in strata}
    weights = {row["stratum"]: float(row["count"]) for row in strata}
    return {
        "metric": metric,
        "shared_count": both.height,
        "only_old_count": old.height - joined.height,
        "only_new_count": new.height - joined.height,
        "lost_grade_count": joined.height - both.height,
        "difference": effect.value,
        "lower": effect.lower,
        "upper": effect.upper,
        "p": test.p,
        "detectable": minimum_detectable_effect(effect.details["sd"], effect.n) if effect.value is not None else None,
        "better_count": both.filter(pl.col("change") > 0).height,
        "worse_count": len(worst),
        "newly_failed": joined.filter(was & ~now.fill_null(value=False))["item_id"].to_list(),
        "newly_passed": joined.filter(~was & now)["item_id"].to_list(),
        "worst_changes": worst[:50],
        "strata": strata,
        "is_hidden_by_pooling": bool(strata) and change_hidden_by_pooling(changes, weights, effect.value or 0.0),
        "is_same_judge": set(old["judge_key"]) == set(new["judge_key"]),
    }


def _strata(both: pl.DataFrame) -> list[dict[str, Any]]:
    """Change and newly failed items by stratum, the worst first. A pinned baseline has no strata; the new side does."""
    column = next((name for name in ("stratum_new", "stratum") if name in both.columns), None)
    if column is None:
        return []
    failed = ((pl.col("value") >= FAILED_BELOW) & (pl.col("value_new") < FAILED_BELOW)).sum()
    grouped = both.group_by(pl.col(column).alias("stratum")).agg(
        pl.len().alias("count"), pl.col("change").mean().alias("difference"), failed.alias("newly_failed_count")
    )
    return grouped.sort("difference", "stratum").to_dicts()
