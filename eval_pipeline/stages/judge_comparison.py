"""The parallel baseline of a judge change: old and new judge on the same stored responses."""

from __future__ import annotations

from typing import Any

import polars as pl

from eval_pipeline.stats.agreement import quadratic_weighted_kappa
from eval_pipeline.stats.paired import equivalence
from eval_pipeline.stats.tails import cvar


def compare(old: pl.DataFrame, new: pl.DataFrame, margin: float = 0.03) -> list[dict[str, Any]]:
    """One row per shared metric: mean shift with its 90 % interval, equivalence within the margin, agreement, tail shift.

    Only responses that both judged are compared: same item, same content.
    """
    found = []
    for metric in sorted(set(old["metric"]) & set(new["metric"])):
        sides = [side.filter(pl.col("metric") == metric).select("item_id", "content_sha256", "value") for side in (old, new)]
        both = sides[0].join(sides[1], on=["item_id", "content_sha256"], suffix="_new").drop_nulls(["value", "value_new"]).sort("item_id")
        before, after = both["value"].to_list(), both["value_new"].to_list()
        if not before:
            found.append({"metric": metric, "n": 0} | dict.fromkeys(("mean_shift", "lower", "upper", "equivalent", "quadratic_weighted_kappa", "cvar10_shift")))
            continue
        shift = equivalence(before, after, margin)
        tails = [cvar(values).value for values in (before, after)]
        found.append({
            "metric": metric, "n": len(before), "mean_shift": shift.value, "lower": shift.lower, "upper": shift.upper,
            "equivalent": shift.lower is not None and shift.upper is not None and -margin < shift.lower and shift.upper < margin,
            "quadratic_weighted_kappa": quadratic_weighted_kappa(before, after).value,
            "cvar10_shift": None if tails[0] is None or tails[1] is None else tails[1] - tails[0],
        })  # fmt: skip
    return found
