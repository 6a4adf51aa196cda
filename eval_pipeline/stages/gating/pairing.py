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


def judge_keys(scores: pl.DataFrame) -> set[str | None]:
    """The judge keys of a metric's rows."""
    return set(scores["judge_key"].unique().to_list())


def shared_share(now: pl.DataFrame, past: pl.DataFrame) -> float:
    """Unchanged items of both, of the larger of the two."""
    if _in_step(now, past):
        return 1.0
    return now.select(KEY).join(past.select(KEY), on=KEY, how="semi").height / max(now.height, past.height, 1)


def aligned(now: pl.DataFrame, past: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One row per item version of any run; `status` is null where it is gone, `status_i` where run i lacks it."""
    whole = now.drop("judge_key")
    for index, one in enumerate(past):
        named = (pl.col(name).alias(f"{name}_{index}") for name in ("status", "value", "upper"))
        old = one.select(*KEY, *named)
        if _in_step(whole, old):
            whole = whole.hstack(old.drop(KEY))
        else:
            whole = whole.join(old, on=KEY, how="full", coalesce=True)
    return whole


def _in_step(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether both hold the same item versions in the same order, as nights of one dataset do: no join is needed."""
    return all(one[name].equals(other[name]) for name in KEY)


def best(index: int) -> pl.Expr:
    """The value of run i, or what its missing grade could at best be; null where the run lacks the item."""
    highest = pl.coalesce(f"upper_{index}", pl.lit(1.0))
    return pl.when(pl.col(f"status_{index}").is_in(LOST)).then(highest).otherwise(pl.col(f"value_{index}"))
