"""Frames for scenarios: one metric of a helpdesk, as many items and runs as a test says. Plain functions, no fixtures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import polars as pl

from eval_pipeline.config import GateConfig
from eval_pipeline.stages import aggregation
from eval_pipeline.stages.gating import Case, Past
from eval_pipeline.tables import CALIBRATIONS, SCORES
from eval_pipeline.vocabulary import Policy, ScoreStatus

NOW = datetime(2026, 6, 11, 2, 0, tzinfo=UTC)
METRIC = "answer_accuracy"
KEY = "judge-1"
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)


def ids(count: int) -> list[str]:
    return [f"q{number:04d}" for number in range(count)]


def base(count: int = 300, seed: int = 0) -> np.ndarray:
    """A good system's values: mean about .86, 3 % at zero."""
    return np.random.default_rng(seed).choice(LEVELS, count, p=[0.03, 0.05, 0.07, 0.15, 0.70])


def flaky(values: np.ndarray, share: float, seed: int) -> np.ndarray:
    """The same values with a share of them one level up or down: what judging the same answers again does."""
    rng = np.random.default_rng(seed)
    moved = np.where(rng.random(len(values)) < share, rng.choice([-0.25, 0.25], len(values)), 0.0)
    return np.clip(values + moved, 0.0, 1.0)


def scores(
    values: Sequence[float | None] | np.ndarray,
    *,
    metric: str = METRIC,
    evaluation_id: str = "tonight",
    judge_key: str | None = KEY,
    statuses: Mapping[int, ScoreStatus] | None = None,
    versions: Mapping[int, str] | None = None,
    clusters: Sequence[str] | None = None,
    item_ids: Sequence[str] | None = None,
) -> pl.DataFrame:
    """`scores` rows. A null value is an invalid item unless `statuses` says otherwise; a failed response is 0."""
    rows = []
    for index, value in enumerate(values):
        missing = value is None or np.isnan(value)
        status = (statuses or {}).get(index, ScoreStatus.INVALID if missing else ScoreStatus.SCORED_BOTH)
        known = None if missing else float(value)
        if status == ScoreStatus.NO_RESPONSE:
            known = 0.0
        elif status not in {ScoreStatus.SCORED_BOTH, ScoreStatus.SCORED_SINGLE, ScoreStatus.SCORED}:
            known = None
        bounded = status in {ScoreStatus.INVALID, ScoreStatus.NOT_ASKED}
        name = (item_ids or ids(len(values)))[index]
        rows.append({
            "evaluation_id": evaluation_id, "metric": metric, "item_id": name, "stratum": "numbers" if index % 3 else "faq",
            "cluster_id": None if clusters is None else clusters[index], "status": status.value, "value": known,
            "lower": 0.0 if bounded else known, "upper": 1.0 if bounded else known, "components": "{}", "outcomes": [],
            "content_sha256": f"content-{name}", "item_sha256": f"{name}-{(versions or {}).get(index, 'v1')}",
            "judge_key": judge_key,
        })  # fmt: skip
    return SCORES.frame(rows)


def evaluation(frame: pl.DataFrame, **changes: object) -> dict[str, object]:
    """The part of an `evaluations` row that the gate reads."""
    keys = dict(frame.group_by("metric").agg(pl.col("judge_key").first()).iter_rows())
    row = {"evaluation_id": "tonight", "item_count": frame["item_id"].n_unique(), "is_partial": False,
           "partial_reason": None, "judge_keys": json.dumps(keys), "metrics": sorted(keys)}  # fmt: skip
    return row | changes


def calibration(
    metric: str = METRIC, decision: str = "pass", *, provisional: bool = False, **changes: object
) -> pl.DataFrame:
    row = {
        "judge_key": KEY, "metric": metric, "stratum": "all", "labels_sha256": "labels", "label_provenance": "human",
        "pair_count": 100, "dropped_count": 0, "spearman_rho": 0.84, "rho_lower": 0.78, "rho_upper": 0.89,
        "rho_status": "ok", "bar": 0.7, "decision": decision, "is_provisional": provisional, "attempt": 1,
        "statistics": "{}", "calibrated_at": NOW,
    }  # fmt: skip
    return CALIBRATIONS.frame([row | changes])


def window(values: np.ndarray, runs: int = 7, share: float = 0.05, **named: object) -> tuple[Past, ...]:
    """Earlier runs of the same system: the same values with some judge noise."""
    return tuple(
        Past(f"night-{run}", scores(flaky(values, share, 100 + run), evaluation_id=f"night-{run}", **named))  # pyright: ignore[reportArgumentType]
        for run in range(runs)
    )


def case(
    tonight: pl.DataFrame,
    *,
    gate: Mapping[str, object] | None = None,
    policy: Policy = Policy.PR,
    calibrations: pl.DataFrame | None = None,
    gated: tuple[str, ...] = (METRIC,),
    row: Mapping[str, object] | None = None,
    **changes: object,
) -> Case:
    """A case whose judge is certified and whose evaluation is complete, unless the test says otherwise."""
    return Case(
        evaluation=row or evaluation(tonight),
        scores=tonight,
        summaries=aggregation.summarise(tonight, evaluation_id="tonight"),
        calibrations=calibration() if calibrations is None else calibrations,
        gate=GateConfig.model_validate(gate or {}),
        policy=policy,
        gated=gated,
        judged=gated,
        **changes,  # pyright: ignore[reportArgumentType]
    )
