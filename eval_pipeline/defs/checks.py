"""Asset checks: what can be wrong with an evaluation, shown also when it is right. Rules live elsewhere."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import polars as pl

from eval_pipeline.defs.partitions import EVALUATIONS
from eval_pipeline.defs.resources import ProjectResource, RunOptions
from eval_pipeline.defs.steps import evaluation
from eval_pipeline.evaluation import checks, dataset_check
from eval_pipeline.evaluation.steps import Evaluation
from eval_pipeline.report.metadata import markdown_table

Context = dg.AssetCheckExecutionContext
Check = Callable[[Evaluation], checks.Checked]
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


SUMMARY_CHECKS = {
    "accounting_identity": (checks.accounting_identity, "summaries", "Every item is accounted for, per metric and stratum."),
    "invalid_grade_rate": (checks.invalid_grade_rate, "summaries", "Unusable judge replies stay under the configured share."),
    "bottom_decile": (checks.bottom_decile, "summaries", "The worst 10 % of each metric keeps its floor."),
    "judge_agreement": (checks.judge_agreement, "scores", "The judge's two templates agree: self-consistency, not truth."),
}  # fmt: skip
TRUST_CHECKS = {
    "canary_drift": (checks.canary_drift, "calibrations", "The judge still answers frozen questions as it first did."),
    "calibration_freshness": (checks.calibration_freshness, "calibrations", "The judge was tested against people, not long ago."),
    "label_provenance": (checks.label_provenance, "calibrations", "Labels come from people."),
}  # fmt: skip
GATE_CHECKS = {
    "cost_against_budget": (checks.cost_against_budget, "gate_decisions", "Calls and cost stay within the limits."),
    "gate_decision": (checks.gate_decision, "gate_decisions", "What the gate says, with every rule."),
}  # fmt: skip
BLOCKING = {"accounting_identity"}
"""Only what would make every later number wrong; the others reach the gate, which blocks and says why."""


def _specs(group: dict[str, tuple[Check, str, str]]) -> list[dg.AssetCheckSpec]:
    return [
        dg.AssetCheckSpec(name, asset=asset, description=text, blocking=name in BLOCKING, **check)
        for name, (_, asset, text) in group.items()
    ]


def _results(group: dict[str, tuple[Check, str, str]], current: Evaluation) -> Iterator[dg.AssetCheckResult]:
    config = current.project.config
    for name, (look, asset, _) in group.items():
        found = look(current)
        yield dg.AssetCheckResult(
            asset_key=asset,
            check_name=name,
            passed=found.passed,
            severity=dg.AssetCheckSeverity[config.checks.severity(name).upper()],
            metadata={
                "rows": dg.MetadataValue.md(markdown_table(found.rows, found.rows.columns[:9], 20)),
                "advice": found.advice_in(config.language),
                **{label: "-" if value is None else value for label, value in found.numbers.items()},
            },
        )


@dg.multi_asset_check(specs=_specs(SUMMARY_CHECKS))
def check_summaries(context: Context, project: ProjectResource, run_options: RunOptions):  # noqa: ANN201
    yield from _results(SUMMARY_CHECKS, evaluation(context, project, run_options))


@dg.multi_asset_check(specs=_specs(TRUST_CHECKS))
def check_trust(context: Context, project: ProjectResource, run_options: RunOptions):  # noqa: ANN201
    yield from _results(TRUST_CHECKS, evaluation(context, project, run_options))


@dg.multi_asset_check(specs=_specs(GATE_CHECKS))
def check_gate(context: Context, project: ProjectResource, run_options: RunOptions):  # noqa: ANN201
    yield from _results(GATE_CHECKS, evaluation(context, project, run_options))


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
