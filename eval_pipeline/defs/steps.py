"""Between an asset and its step: which evaluation this run is, and what Dagster shows of the step's table."""

from datetime import UTC, datetime

import dagster as dg
import polars as pl

from eval_pipeline.defs.partitions import resolve
from eval_pipeline.defs.resources import ProjectResource, RunOptions
from eval_pipeline.evaluation import publication
from eval_pipeline.evaluation.steps import Evaluation
from eval_pipeline.report.metadata import markdown_table

SHOWN = {
    "golden_items": ["item_id", "stratum", "language", "user_input", "reference"],
    "responses": ["item_id", "response", "error", "latency_seconds"],
    "claims": ["item_id", "source", "claim_index", "claim"],
    "verdicts": ["metric", "item_id", "template_id", "part_index", "outcome", "grade", "is_cached"],
    "scores": ["metric", "item_id", "status", "value", "lower", "upper", "disagreement"],
    "summaries": ["metric", "stratum", "item_count", "scored_count", "no_response_count", "invalid_count", "mean",
                  "mean_lower_bound", "mean_upper_bound", "cvar10", "invalid_share"],
    "calibrations": ["metric", "stratum", "label_provenance", "pair_count", "spearman_rho", "rho_lower", "decision"],
    "gate_decisions": ["rule", "metric", "verdict", "evidence"],
}  # fmt: skip
"""Columns of each table that its Markdown metadata shows."""


def evaluation(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, project: ProjectResource,
               run_options: RunOptions) -> Evaluation:  # fmt: skip
    """The evaluation this run is about. A re-execution keeps the evaluation id of its root run."""
    root = context.run.root_run_id or context.run.run_id
    record = context.instance.get_run_record_by_id(root)
    started = record.create_timestamp.astimezone(UTC) if record else datetime.now(UTC)
    loaded = project.load()
    partition = dg.MultiPartitionKey(_keys(context))
    dataset, version, system, judge = resolve(loaded, partition)
    return Evaluation(
        loaded, context.run.tags.get("eval_pipeline/evaluation_id") or f"{started:%Y%m%dT%H%M%S}-{root[:8]}", dataset, version, system, judge, started, run_options.options(),
        project.progress,
    )  # fmt: skip


def _keys(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> dict[str, str]:
    tags = context.run.tags
    return {dimension: tags[f"dagster/partition/{dimension}"] for dimension in ("dataset_version", "configuration")}


def materialize(step: str, context: dg.AssetExecutionContext, project: ProjectResource,
                run_options: RunOptions) -> dg.MaterializeResult:  # fmt: skip
    """Runs one step and describes its table."""
    current = evaluation(context, project, run_options)
    frame: pl.DataFrame = getattr(current, step)()
    return dg.MaterializeResult(
        metadata={
            "evaluation_id": current.evaluation_id,
            "dagster/row_count": frame.height,
            "rows": dg.MetadataValue.md(markdown_table(frame, SHOWN[step], 20)),
            **_counts(frame),
        }
    )


def _counts(frame: pl.DataFrame) -> dict[str, int]:
    """Rows by outcome or status, where the table has one."""
    column = next((name for name in ("outcome", "status", "verdict", "decision") if name in frame.columns), None)
    if column is None or frame.is_empty():
        return {}
    return {f"{column}_{value}": count for value, count in frame.group_by(column).len().sort(column).iter_rows()}


def publish(project: ProjectResource) -> dg.MaterializeResult:
    """Rebuilds the published database."""
    loaded = project.load()
    path = publication.publish(loaded)
    return dg.MaterializeResult(metadata={"database": dg.MetadataValue.path(str(path))})


def write_report(project: ProjectResource) -> dg.MaterializeResult:
    """Writes the report of the newest evaluation."""
    loaded = project.load()
    path = publication.write_report(loaded)
    return dg.MaterializeResult(metadata={"report": dg.MetadataValue.path(str(path))})
