"""An estimate of true quality beside the raw judge mean, from the labels that fit this evaluation.

Which estimator applies follows from where the labels come from: labels of this run's own responses, drawn with known
chances, give PPI++; labels of other responses give Rogan-Gladen for a pass/fail cut; else there is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from eval_pipeline.stats.quality import CorrectedQuality, corrected_quality
from eval_pipeline.tables import CALIBRATIONS
from eval_pipeline.vocabulary import Provenance, ScoreStatus

UNASKED = (ScoreStatus.NO_RESPONSE.value, ScoreStatus.NOT_APPLICABLE.value)
"""Statuses of rows on which a judge had nothing to judge."""


def estimate(
    scores: pl.DataFrame,
    labels: pl.DataFrame,
    *,
    older: pl.DataFrame | None = None,
    cuts: Mapping[str, float] | None = None,
) -> dict[str, CorrectedQuality]:
    """By metric: the raw judge mean, and the corrected one where an estimator applies.

    Args:
        scores: `scores` rows of the evaluation.
        labels: `human_labels` rows; only human ones count, those whose content occurs in the evaluation and whose
            chance to be drawn is known.
        older: columns metric, human, judge: labelled texts of other runs with the same judge's value.
        cuts: by metric, the value from which a response passes; Rogan-Gladen needs one.
    """
    human = labels.filter(pl.col("provenance") == Provenance.HUMAN.value)
    metrics = sorted(set(scores["metric"]))
    return {name: _estimate(name, scores, human, older, (cuts or {}).get(name)) for name in metrics}


def _estimate(
    metric: str, scores: pl.DataFrame, labels: pl.DataFrame, older: pl.DataFrame | None, cut: float | None
) -> CorrectedQuality:
    rows = scores.filter((pl.col("metric") == metric) & ~pl.col("status").is_in(UNASKED))
    own = (
        labels.filter((pl.col("metric") == metric) & (pl.col("inclusion_probability") > 0))
        .group_by("content_sha256")
        .agg(pl.col("value").mean().alias("human"), pl.col("inclusion_probability").first())
    )
    joined = rows.select("content_sha256", "value").join(own, on="content_sha256", how="left")
    chance = joined["inclusion_probability"].drop_nulls()
    past = None
    if older is not None:
        mine = older.filter(pl.col("metric") == metric)
        past = (mine["human"].cast(pl.Float64).to_numpy(), mine["judge"].cast(pl.Float64).to_numpy())
    return corrected_quality(
        joined["value"].to_numpy(),
        joined["human"].to_numpy() if chance.len() else None,
        # Equal chances need no weights; then the mean of the labels alone can be shown beside.
        weights=(1 / joined["inclusion_probability"]).to_numpy() if chance.n_unique() > 1 else None,
        older_labels=past,
        cut=cut,
    )


def as_json(found: CorrectedQuality) -> dict[str, Any]:
    """The estimate for machine-readable output; `corrected` is null where no estimator applies."""
    stats = {"raw": found.raw, "corrected": found.corrected, "human_only": found.human_only}
    return {"estimator": found.estimator, "reason": found.reason} | {
        name: None if stat is None else stat.to_dict() for name, stat in stats.items()
    }  # fmt: skip


def pairs_of_other_runs(labels: pl.DataFrame, judged: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """Human-labelled texts that this evaluation does not hold: metric, human, judge (null when invalid).

    Args:
        labels: `human_labels` rows.
        judged: the judge's value of each labelled text: metric, content_sha256, value.
        scores: `scores` rows of the evaluation.
    """
    by = ["metric", "content_sha256"]
    human = (
        labels.filter(pl.col("provenance") == Provenance.HUMAN.value)
        .group_by(by, maintain_order=True)
        .agg(pl.col("value").mean().alias("human"))
    )
    others = human.join(scores.select(by), on=by, how="anti")
    return others.join(judged.select(*by, pl.col("value").alias("judge")), on=by, how="left").drop("content_sha256")


def attach(calibrations: pl.DataFrame, found: Mapping[str, CorrectedQuality]) -> pl.DataFrame:
    """The `calibrations` rows with each metric's estimate under `true_quality` in the statistics of its whole row."""
    rows = calibrations.to_dicts()
    for row in rows:
        if row["stratum"] == "all" and row["metric"] in found:
            details = json.loads(row["statistics"]) | {"true_quality": as_json(found[row["metric"]])}
            row["statistics"] = json.dumps(details, sort_keys=True)
    return CALIBRATIONS.frame(rows)
