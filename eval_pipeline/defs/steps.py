"""Between an asset and its step: which evaluation this run is, and what Dagster shows of the step's table."""

from dataclasses import asdict, replace
from datetime import UTC, datetime

import dagster as dg
import polars as pl

from eval_pipeline.defs.partitions import register
from eval_pipeline.defs.requests import EVALUATION_TAG, RELEASE_TAG
from eval_pipeline.defs.resources import ProjectResource, RunOptions, WarmTarget
from eval_pipeline.evaluation import publication, reading
from eval_pipeline.evaluation.partitions import combine, refuse_other_release, resolve
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Evaluation
from eval_pipeline.evaluation.warming import Share, warm
from eval_pipeline.report.images import images
from eval_pipeline.report.metadata import markdown_table
from eval_pipeline.vocabulary import Language

PARTITION_TAG = "eval_pipeline/partition"
"""The partition that a run of `warm_ledger`, which has none of its own, prepares."""
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
    loaded = project.load()
    keys = _keys(context)
    names = resolve(loaded, keys["dataset_version"], keys["configuration"])
    current = _evaluation(context, project, loaded, names, run_options)
    if not current.options.responses_of:
        refuse_other_release(keys["configuration"], current.system, current.system_release)
    return current


def _evaluation(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext | dg.OpExecutionContext,
                project: ProjectResource, loaded: Project, names: tuple[str, str, str, str],
                run_options: RunOptions) -> Evaluation:  # fmt: skip
    evaluation_id, started = _identity(context)
    current = Evaluation(loaded, evaluation_id, *names, started, run_options.options(), project.progress)
    return replace(current, system_release=_release(context, current))


def _identity(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext | dg.OpExecutionContext,
              ) -> tuple[str, datetime]:  # fmt: skip
    """Id and start of the evaluation of this run: its root run's, or the one that it goes on with."""
    root = context.run.root_run_id or context.run.run_id
    record = context.instance.get_run_record_by_id(root)
    started = record.create_timestamp.astimezone(UTC) if record else datetime.now(UTC)
    return context.run.tags.get(EVALUATION_TAG) or f"{started:%Y%m%dT%H%M%S}-{root[:8]}", started


def _release(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext | dg.OpExecutionContext,
             current: Evaluation) -> str:  # fmt: skip
    """The system's release as the run recorded it; the first step of a run that does not know it reads and records it."""
    run = context.instance.get_run_by_id(context.run.run_id) or context.run
    known = run.tags.get(RELEASE_TAG)
    if known is None:
        known = current.release()
        context.instance.add_run_tags(run.run_id, {RELEASE_TAG: known})
    return known


def prepare(context: dg.OpExecutionContext, project: ProjectResource, run_options: RunOptions,
            target: WarmTarget) -> None:  # fmt: skip
    """The first two steps of a new evaluation: what its shards ask about, and what the run that resumes it takes up."""
    loaded = project.load()
    names = target.names(loaded)
    current = _evaluation(context, project, loaded, names, run_options)
    partition = register(context.instance, combine(loaded, *names, current.system_release))
    context.instance.add_run_tags(
        context.run.run_id, {EVALUATION_TAG: current.evaluation_id, PARTITION_TAG: str(partition)}
    )
    current.golden_items()
    current.responses()


def warm_share(context: dg.OpExecutionContext, project: ProjectResource, run_options: RunOptions, target: WarmTarget,
               index: int, count: int) -> None:  # fmt: skip
    """Asks one share of the questions, and says what it came to."""
    loaded = project.load()
    current = _evaluation(context, project, loaded, target.names(loaded), run_options)
    warmed = warm(current, Share(index, count))
    context.add_output_metadata({"evaluation_id": current.evaluation_id, **asdict(warmed)})


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
            **_charts(step, frame, current.project.config.language),
            **_counts(frame),
        }
    )


def _charts(step: str, frame: pl.DataFrame, language: Language) -> dict[str, dg.MetadataValue]:
    drawn = images(step, frame, language)
    return {"charts": dg.MetadataValue.md(drawn)} if drawn else {}


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


def write_report(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    """Writes the report of this run's evaluation; of the newest one where the run is of the report alone."""
    loaded, (evaluation_id, _) = project.load(), _identity(context)
    is_known = evaluation_id in reading.evaluations(loaded)["evaluation_id"]
    path = publication.write_report(loaded, evaluation_id if is_known else None)
    return dg.MaterializeResult(metadata={"report": dg.MetadataValue.path(str(path))})
