"""Everything about one evaluation that people look at, collected once from tables. No drawing here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eval_pipeline.errors import EvaluationNotFound
from eval_pipeline.tables import (
    CALIBRATIONS,
    CLAIMS,
    DATASET_CHANGES,
    EVALUATIONS,
    GATE_DECISIONS,
    GOLDEN_ITEMS,
    RESPONSES,
    SCORES,
    SUMMARIES,
    VERDICTS,
    Table,
)  # fmt: skip
from eval_pipeline.vocabulary import Language

Read = Callable[..., pl.DataFrame]
"""`read(table, value=None)`: the rows of a table, or those of one value of its first key column."""


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """One evaluation.

    Attributes:
        evaluation: its `evaluations` row.
        items, responses, claims, verdicts, scores, summaries, gate: its rows of those tables.
        calibrations: the newest row per metric and stratum of its judge keys.
        trend: the evaluations of this system and dataset up to this one, oldest first, with their whole-set summaries.
        previous: the evaluation it is compared with, or null.
        previous_scores, previous_summaries: rows of that evaluation; empty without one.
        changes: `dataset_changes` rows of its dataset version.
        findings: what is rotten about the dataset: severity, message, message_ko, count, item_ids; null when not looked at.
        without_rotten: per metric mean, scored_count, mean_without, scored_count_without.
    """

    evaluation: Mapping[str, Any]
    items: pl.DataFrame
    responses: pl.DataFrame
    claims: pl.DataFrame
    verdicts: pl.DataFrame
    scores: pl.DataFrame
    summaries: pl.DataFrame
    gate: pl.DataFrame
    calibrations: pl.DataFrame
    trend: pl.DataFrame
    previous: Mapping[str, Any] | None
    previous_scores: pl.DataFrame
    previous_summaries: pl.DataFrame
    changes: pl.DataFrame
    findings: Sequence[Mapping[str, Any]] | None = None
    without_rotten: pl.DataFrame | None = None

    def true_quality(self, metric: str) -> dict[str, Any] | None:
        """The estimate of true quality of one metric as in `run --json`; null where it was not calibrated."""
        rows = self.calibrations.filter((pl.col("metric") == metric) & (pl.col("stratum") == "all"))
        return json.loads(rows["statistics"][0]).get("true_quality") if rows.height else None

    def remarks(self, language: Language) -> list[str]:
        """What the evaluation warns of, in one language where it is there."""
        korean = self.evaluation["warnings_ko"] if language == Language.KO else None
        return list(korean or self.evaluation["warnings"])


def view(read: Read, evaluation_id: str, baseline: str | None = None) -> EvaluationView:
    """Collects one evaluation.

    Args:
        read: reads a table, whole or one value of its first key column.
        evaluation_id: which.
        baseline: the evaluation to compare with; null takes the complete one before it of the same system and dataset.

    Raises:
        EvaluationNotFound: one of the two has no `evaluations` row.
    """
    everything = read(EVALUATIONS).sort("started_at", "evaluation_id")
    mine = everything.filter(pl.col("evaluation_id") == evaluation_id)
    if mine.is_empty():
        raise EvaluationNotFound(selector=evaluation_id)
    row = mine.to_dicts()[0]
    series = everything.filter(
        (pl.col("system") == row["system"]) & (pl.col("dataset") == row["dataset"]) & (pl.col("started_at") <= row["started_at"])
        & (~pl.col("is_partial") | (pl.col("evaluation_id") == evaluation_id))
    )  # fmt: skip
    earlier = series.filter(pl.col("evaluation_id") != evaluation_id).to_dicts()
    previous = earlier[-1] if earlier else None
    if baseline is not None:
        chosen = everything.filter(pl.col("evaluation_id") == baseline).to_dicts()
        if not chosen:
            raise EvaluationNotFound(selector=baseline)
        previous = chosen[0]
    of_version = pl.col("dataset_version") == row["dataset_version"]

    def of(table: Table, name: str | None) -> pl.DataFrame:
        return table.frame() if name is None else read(table, name)

    previous_id = previous["evaluation_id"] if previous else None
    return EvaluationView(
        evaluation=row,
        items=read(GOLDEN_ITEMS, row["dataset"]).filter(of_version),
        responses=read(RESPONSES, evaluation_id),
        claims=read(CLAIMS, evaluation_id),
        verdicts=read(VERDICTS, evaluation_id),
        scores=read(SCORES, evaluation_id),
        summaries=read(SUMMARIES, evaluation_id),
        gate=read(GATE_DECISIONS, evaluation_id),
        calibrations=_calibrations(read, evaluation_id),
        trend=_trend(read, series),
        previous=previous,
        previous_scores=of(SCORES, previous_id),
        previous_summaries=of(SUMMARIES, previous_id),
        changes=read(DATASET_CHANGES, row["dataset"]).filter(of_version),
    )


def _calibrations(read: Read, evaluation_id: str) -> pl.DataFrame:
    rows = read(CALIBRATIONS).filter(pl.col("evaluation_id") == evaluation_id)
    return rows.sort("calibrated_at").unique(subset=["metric", "stratum"], keep="last").sort("metric", "stratum")


def _trend(read: Read, series: pl.DataFrame) -> pl.DataFrame:
    shown = series.tail(60)
    summaries = [read(SUMMARIES, name).filter(pl.col("stratum") == "all") for name in shown["evaluation_id"]]
    joined = pl.concat([SUMMARIES.frame(), *summaries])
    return joined.join(
        shown.select("evaluation_id", "started_at", "system_release", "judge_model"), on="evaluation_id"
    ).sort("started_at")
