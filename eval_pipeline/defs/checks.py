"""Asset checks: what can be wrong with an evaluation, shown also when it is right. Rules live elsewhere."""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
import polars as pl

from eval_pipeline.defs.partitions import EVALUATIONS
from eval_pipeline.defs.resources import ProjectResource, RunOptions
from eval_pipeline.defs.steps import evaluation
from eval_pipeline.evaluation import dataset_check
from eval_pipeline.report.metadata import markdown_table
from eval_pipeline.stages.aggregation import accounting_violations
from eval_pipeline.tables import SUMMARIES

Context = dg.AssetCheckExecutionContext
check: dict[str, Any] = {"partitions_def": EVALUATIONS}
ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


def _result(bad: pl.DataFrame, advice: str, severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=bad.is_empty(),
        severity=severity,
        metadata={
            "bad_row_count": bad.height,
            "rows": dg.MetadataValue.md(markdown_table(bad, bad.columns[:8], 20)),
            "advice": "-" if bad.is_empty() else advice,
        },
    )


@dg.asset_check(
    asset="summaries", **check, blocking=True, description="Every item is accounted for, per metric and stratum."
)
def accounting_identity(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.AssetCheckResult:
    summaries = evaluation(context, project, run_options).read(SUMMARIES)
    lines = pl.DataFrame(
        {"violation": [str(line) for line in accounting_violations(summaries)]}, schema={"violation": pl.String}
    )
    return _result(lines, "This is a defect of the pipeline; keep the warehouse and report it.", ERROR)


@dg.asset_check(asset="summaries", **check, description="Unusable judge replies stay under the configured share.")
def invalid_grade_rate(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.AssetCheckResult:
    current = evaluation(context, project, run_options)
    cap = current.project.config.gate.max_invalid_share
    shown = ["metric", "stratum", "item_count", "invalid_count", "invalid_share"]
    bad = current.read(SUMMARIES).filter((pl.col("stratum") == "all") & (pl.col("invalid_share") > cap)).select(shown)
    return _result(
        bad, f"Over {cap:.1%}: query the view invalid_grades, then fix the judge, prompt or token limit.", ERROR
    )


@dg.asset_check(
    asset="golden_items",
    **check,
    description="The version is as it was tagged, and neither it nor its rows are rotten.",
)
def golden_items_suite(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.AssetCheckResult:
    current = evaluation(context, project, run_options)
    folder = current.project.dataset_folder(current.dataset)
    findings = dataset_check.check(current.project, current.dataset, folder, current.tag, datetime.now(UTC).date())
    severity = ERROR if any(one.severity == "error" for one in findings) else WARN
    return _result(
        dataset_check.rows(findings), "Correct the named rows and add the dataset under a new tag.", severity
    )
