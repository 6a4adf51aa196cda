"""A change of judge: old and new on the same stored responses and labels, and the decision that is logged in git."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import polars as pl

from eval_pipeline.errors import EvaluationNotFound, MessageRequired, NoParallelBaseline
from eval_pipeline.evaluation import reading
from eval_pipeline.evaluation.project import Project
from eval_pipeline.stages.judge_comparison import change_log, compare
from eval_pipeline.store.evidence import accept_judge
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CALIBRATIONS, HUMAN_LABELS, LABEL_SCORES, SCORES
from eval_pipeline.vocabulary import Provenance


def newest_by(project: Project, name: str) -> str | None:
    """The newest complete evaluation by a judge, else what `name` selects; null for a judge that has judged nothing.

    Raises:
        EvaluationNotFound: `name` is no judge and selects no evaluation.
    """
    rows = reading.evaluations(project).filter(~pl.col("is_partial") & (pl.col("judge") == name))
    if rows.height:
        return str(rows["evaluation_id"][-1])
    return None if name in project.config.judges else reading.select(project, name)


def parallel_baseline(project: Project, old: str, new: str) -> list[dict[str, Any]]:
    """One row per metric that both evaluations judged; the keys are those of `judge_comparison.compare`.

    Everything is read from the warehouse, so a retired judge can still be compared with.
    """
    warehouse = Warehouse(project.warehouse)
    mine = warehouse.read(CALIBRATIONS).filter((pl.col("evaluation_id") == new) & (pl.col("stratum") == "all"))
    return compare(
        warehouse.read(SCORES, old), warehouse.read(SCORES, new), labels=_on_labels(warehouse, old, new),
        is_calibrated={row["metric"]: row["decision"] == "pass" for row in mine.to_dicts()},
    )  # fmt: skip


def _on_labels(warehouse: Warehouse, old: str, new: str) -> pl.DataFrame:
    """Both judges beside people: metric, content_sha256, human (mean over people), old, new."""
    by = ["metric", "content_sha256"]
    human = (
        warehouse.read(HUMAN_LABELS)
        .filter(pl.col("provenance") == Provenance.HUMAN)
        .group_by(by, maintain_order=True)
        .agg(pl.col("value").mean().alias("human"))
    )
    sides = [warehouse.read(LABEL_SCORES, name).select(*by, pl.col("value").alias(side))
             for name, side in ((old, "old"), (new, "new"))]  # fmt: skip
    return human.join(sides[0], on=by).join(sides[1], on=by)


def _beside(project: Project, earlier: list[str], same: list[str]) -> tuple[str | None, str]:
    """The newest evaluation by another judge and the newest by this one that judged some of the same responses.

    A night by the new judge has responses of its own; what was judged twice are the stored ones.
    """
    read, key = Warehouse(project.warehouse).read, ["metric", "item_id", "content_sha256"]
    for new in same:
        mine = read(SCORES, new).select(key)
        for old in earlier:
            if not mine.join(read(SCORES, old).select(key), on=key, how="semi").is_empty():
                return old, new
    return None, same[0]


def accept(project: Project, name: str, message: str, person: str | None, now: datetime) -> dict[str, Any]:
    """Logs that the judge of an evaluation is the judge of record; a change of judge needs its parallel baseline first.

    Args:
        name: a judge, whose newest evaluation counts, or an evaluation.

    Returns:
        The `evaluations` row it rests on.

    Raises:
        MessageRequired: no reason is given.
        NoParallelBaseline: the new judge judged none of the responses that the old one judged.
        EvaluationNotFound: the judge has judged nothing, or no evaluation is named so.
    """
    if not message.strip():
        raise MessageRequired()
    evaluation_id = newest_by(project, name)
    if evaluation_id is None:
        raise EvaluationNotFound(selector=name)
    rows = reading.evaluations(project)
    row = rows.row(by_predicate=pl.col("evaluation_id") == evaluation_id, named=True)
    keys = {metric: key for metric, key in json.loads(row["judge_keys"]).items() if key is not None}
    series = (
        rows.filter((pl.col("system") == row["system"]) & (pl.col("dataset") == row["dataset"])).reverse().to_dicts()
    )
    earlier, same = [], [evaluation_id]
    for other in series:
        is_other = any(json.loads(other["judge_keys"]).get(metric) not in {None, key} for metric, key in keys.items())
        (earlier if is_other else same).append(other["evaluation_id"])
    old, new = _beside(project, earlier, same) if earlier else (None, evaluation_id)
    if earlier and old is None:
        raise NoParallelBaseline(judge=row["judge"], old=earlier[0])
    shifts = parallel_baseline(project, old, new) if old else []
    by_metric = {shift["metric"]: shift for shift in shifts}
    for metric, key in keys.items():
        shift = by_metric.get(metric, {})
        accept_judge(project.dataset_folder(row["dataset"]), {
            "judge_key": key, "metric": metric, "judge": row["judge"], "judge_model": row["judge_model"], "message": message,
            "system": row["system"], "evaluation_id": new, "parallel_baseline": old,
            **{name: shift.get(name) for name in ("n", "mean_shift", "lower", "upper", "equivalent", "rho_old", "rho_new",
                                                  "rho_difference_p", "decision")},
            "change": change_log(shift) if shift else None, "person": person, "decided_at": now.isoformat(),
        })  # fmt: skip
    return row
