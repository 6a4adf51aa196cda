"""The chain, in order. Each asset is one step of an evaluation; what a step does is in `evaluation/steps.py`."""

from typing import Any

import dagster as dg

from eval_pipeline.defs.partitions import EVALUATIONS
from eval_pipeline.defs.resources import ProjectResource, RunOptions
from eval_pipeline.defs.steps import materialize, publish, write_report

step: dict[str, Any] = {"partitions_def": EVALUATIONS, "group_name": "evaluation"}
Context = dg.AssetExecutionContext


@dg.asset(**step, description="The golden dataset version under evaluation: one row per item.")
def golden_items(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("golden_items", context, project, run_options)


@dg.asset(**step, deps=[golden_items], description="What the system answered: one row per item, failures included.")
def responses(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("responses", context, project, run_options)


@dg.asset(**step, deps=[responses], description="Atomic claims of responses and references.")
def claims(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("claims", context, project, run_options)


@dg.asset(**step, deps=[claims], description="The outcome of every question put to the judge, raw replies included.")
def verdicts(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("verdicts", context, project, run_options)


@dg.asset(**step, deps=[verdicts], description="One metric's value for one response, or why there is none.")
def scores(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("scores", context, project, run_options)


@dg.asset(**step, deps=[scores], description="Each metric over each stratum: counts, bounds, interval, worst 10 %.")
def summaries(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("summaries", context, project, run_options)


@dg.asset(**step, deps=[summaries], description="The judge against human labels, per metric.")
def calibrations(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("calibrations", context, project, run_options)


@dg.asset(**step, deps=[calibrations], description="The verdict of every gate rule, with its evidence.")
def gate_decisions(context: Context, project: ProjectResource, run_options: RunOptions) -> dg.MaterializeResult:
    return materialize("gate_decisions", context, project, run_options)


@dg.asset(
    deps=["gate_decisions"], group_name="publication", pool="publisher", description="The published results.duckdb."
)
def results(project: ProjectResource) -> dg.MaterializeResult:
    return publish(project)


@dg.asset(deps=["results"], group_name="publication", description="The HTML report of this run's evaluation.")
def report(context: Context, project: ProjectResource) -> dg.MaterializeResult:
    return write_report(context, project)
