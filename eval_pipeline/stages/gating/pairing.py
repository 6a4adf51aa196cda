"""How evaluations pair for the gate: on the item and its content hash, one metric at a time. No test is here."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from eval_pipeline.vocabulary import ScoreStatus

KEY = ["item_id", "item_sha256"]
LOST = [ScoreStatus.INVALID.value, ScoreStatus.NOT_ASKED.value]
"""Statuses whose value exists and is unknown."""


def of_metric(scores: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The columns that pairing needs, of one metric."""
    return scores.filter(pl.col("metric") == metric).select(*KEY, "judge_key", "status", "value", "lower", "upper")


def shared_share(now: pl.DataFrame, past: pl.DataFrame) -> float:
    """Unchanged items of both, of the larger of the two."""
    return now.select(KEY).join(past.select(KEY), on=KEY, how="semi").height / max(now.height, past.height, 1)


def aligned(now: pl.DataFrame, past: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One row per item version of any run; `status` is null where it is gone, `status_i` where run i lacks it."""
    whole = now.drop("judge_key")
    for index, one in enumerate(past):
        named = (pl.col(name).alias(f"{name}_{index}") for name in ("status", "value", "upper"))
        old = one.select(*KEY, *named)
        whole = whole.join(old, on=KEY, how="full", coalesce=True)
    return whole


def best(index: int) -> pl.Expr:
    """The value of run i, or what its missing grade could at best be; null where the run lacks the item."""
    highest = pl.coalesce(f"upper_{index}", pl.lit(1.0))
    return pl.when(pl.col(f"status_{index}").is_in(LOST)).then(highest).otherwise(pl.col(f"value_{index}"))
