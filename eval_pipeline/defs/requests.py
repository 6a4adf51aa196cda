"""Runs that are asked for: partition, options and tags of an evaluation that is due."""

from dataclasses import replace

import dagster as dg

from eval_pipeline.defs.partitions import register
from eval_pipeline.defs.resources import run_config
from eval_pipeline.evaluation.due import Due
from eval_pipeline.evaluation.steps import Options

EVALUATION_TAG = "eval_pipeline/evaluation_id"
"""The evaluation that a run goes on with, or began."""
RELEASE_TAG = "eval_pipeline/system_release"
"""The system's release, as read once for the whole evaluation."""


def request(instance: dg.DagsterInstance, due: Due, options: Options) -> dg.RunRequest:
    """The run of one due evaluation; its partition is added where it is new."""
    return dg.RunRequest(
        run_key=due.run_key,
        partition_key=register(instance, due.of),
        run_config=run_config(replace(options, responses_of=due.responses_of)),
        tags={RELEASE_TAG: due.of.release} | ({EVALUATION_TAG: due.goes_on_with} if due.goes_on_with else {}),
    )
