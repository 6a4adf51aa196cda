"""One evaluation as a run in MLflow. What is undefined is a tag with its reason, never a number."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError

from eval_pipeline.errors import ExtraMissing, NotWritable
from eval_pipeline.report import sections
from eval_pipeline.report.view import EvaluationView

PARAMS = (
    "dataset",
    "dataset_tag",
    "dataset_version",
    "system",
    "system_release",
    "judge",
    "judge_model",
    "config_sha256",
)
STATISTICS = (
    "mean", "mean_lower_bound", "mean_upper_bound", "mean_interval_lower", "mean_interval_upper", "q10", "cvar10",
    "catastrophic_share", "invalid_share",
)  # fmt: skip
COUNTS = ("item_count", *sections.COUNTS)
EVALUATION_TAG = "eval_pipeline.evaluation_id"
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "WARNING"}
"""What MLflow reads from the environment when it is imported; what is set already stays."""


@dataclass(frozen=True, slots=True)
class Logged:
    """What the run will hold."""

    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]


def logged(view: EvaluationView) -> Logged:
    """The evaluation in MLflow's words. A metric is `<metric>.<column of summaries>`, over the whole set."""
    row = view.evaluation
    decision, _ = sections.rules(view, "evidence")
    metrics: dict[str, float] = {}
    tags = {
        EVALUATION_TAG: row["evaluation_id"], "eval_pipeline.is_partial": str(row["is_partial"]).lower(),
        "eval_pipeline.decision": decision["verdict"] if decision else "NOT_EVALUATED",
    }  # fmt: skip
    for metric, summary in sections.whole(view).items():
        known = {name: float(summary[name]) for name in (*STATISTICS, *COUNTS) if _is_number(summary[name])}
        metrics |= {f"{metric}.{name}": value for name, value in known.items()}
        unknown = [name for name in STATISTICS if name not in known]
        if unknown:
            tags[f"{metric}.undefined"] = "; ".join(f"{name}: {_reason(summary, name)}" for name in unknown)[:5000]
    return Logged({name: str(row[name]) for name in PARAMS if row[name] is not None}, metrics, tags)


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _reason(summary: sections.Row, statistic: str) -> str:
    status = summary["cvar10_status"] if statistic == "cvar10" else None
    return summary["mean_reason"] or status or "undefined"


def log(view: EvaluationView, artifacts: Sequence[Path], target: str) -> str:
    """Writes the evaluation to a tracking server, database or local folder; returns the run's id.

    A second export of the same evaluation updates its run. In a folder everything is in `mlflow.db` and `artifacts/`.

    Raises:
        ExtraMissing: mlflow is not installed.
        NotWritable: MLflow cannot write there; in its own words.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise ExtraMissing(feature="export --as mlflow", extra="mlflow") from error
    try:
        uri, artifact_root = _store(target)
        return _write(MlflowClient(tracking_uri=uri), view, artifacts, artifact_root)
    except (MlflowException, SQLAlchemyError, OSError, ImportError) as error:  # a database's driver may be missing
        shown, secret = _shown(target)
        reason = str(error).replace(secret, "") if secret else str(error)
        raise NotWritable(path=shown, reason=" ".join(reason.split())[:300]) from error


def _store(target: str) -> tuple[str, str | None]:
    """The tracking URI of a target, and where artifacts go unless the server decides."""
    if "://" in target or target == "databricks":
        return target, None
    folder = Path(target).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()


def _shown(target: str) -> tuple[str, str]:
    """The target without user and password, and those two as they stand in it."""
    user, at, _ = urlsplit(target).netloc.rpartition("@")
    return target.replace(f"{user}{at}", "", 1) if at else target, f"{user}{at}"


def _write(client: Any, view: EvaluationView, artifacts: Sequence[Path], artifact_root: str | None) -> str:
    from mlflow.entities import Metric, Param, RunTag

    found, row = logged(view), view.evaluation
    name = f"eval-pipeline/{row['dataset']}"
    known = client.get_experiment_by_name(name)
    experiment = known.experiment_id if known else client.create_experiment(name, artifact_location=artifact_root)
    runs = client.search_runs([experiment], f"tags.`{EVALUATION_TAG}` = '{row['evaluation_id']}'", max_results=1)
    start, end = (int(row[moment].timestamp() * 1000) for moment in ("started_at", "finished_at"))
    run = runs[0] if runs else client.create_run(experiment, start, run_name=row["evaluation_id"])
    run_id = run.info.run_id
    client.log_batch(
        run_id,
        [Metric(name, value, end, 0) for name, value in found.metrics.items()],
        [Param(*one) for one in found.params.items()],
        [RunTag(*one) for one in found.tags.items()],
    )
    for path in artifacts:
        client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, end_time=end)
    return run_id
