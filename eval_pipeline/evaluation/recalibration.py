"""The judge of a finished evaluation against labels that came in after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from eval_pipeline.errors import JudgeMisconfigured, Stopped
from eval_pipeline.evaluation.progress import Progress
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.publication import publish
from eval_pipeline.evaluation.steps import STOPPED, Evaluation, Options
from eval_pipeline.intake import datasets
from eval_pipeline.stages import calibration
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CALIBRATIONS


def refresh(project: Project, row: Mapping[str, Any], progress: Progress) -> bool:
    """Calibrates an evaluation's judges anew when the labels are not those they were calibrated on; whether it did.

    What the ledger holds is not paid for again, so labels of this evaluation's own texts cost nothing.

    Args:
        row: the evaluation's `evaluations` row.

    Raises:
        JudgeMisconfigured: the configured judge is not the one of this evaluation any more.
        Stopped: the provider or a limit ended it; the calibrations are as they were.
    """
    labels = datasets.labels(project.dataset_folder(row["dataset"]), row["dataset"])
    stored = Warehouse(project.warehouse).read(CALIBRATIONS).filter(pl.col("evaluation_id") == row["evaluation_id"])
    if calibration.is_current(stored, labels):
        return False
    metrics = tuple(name for name in row["metrics"] if name in project.config.metrics)
    evaluation = Evaluation(project, row["evaluation_id"], row["dataset"], row["dataset_tag"], row["system"], row["judge"],
                            row["started_at"], Options(metrics=metrics), progress)  # fmt: skip
    keys = json.loads(row["judge_keys"])
    if any(key != keys[name] for name, key in evaluation.judge_keys().items()):
        reason = f"labels changed since {row['evaluation_id']}, and so did the judge, its prompts or a metric; `eval-pipeline run` calibrates it"
        raise JudgeMisconfigured(judge=row["judge"], reason=reason)
    evaluation.forget_stop()
    evaluation.calibrations()
    if evaluation.is_stopped():
        raise Stopped(what=str(evaluation.partial_reason()).removeprefix(STOPPED))
    publish(project)
    return True
