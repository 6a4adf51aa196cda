"""The nightly schedule, from `evaluation.yaml`; nothing when the project has none."""

import dagster as dg

from eval_pipeline.defs.jobs import EVALUATE
from eval_pipeline.defs.partitions import key, register
from eval_pipeline.defs.resources import ProjectResource, run_config
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.evaluation.steps import Options


def build_schedules() -> list[dg.ScheduleDefinition]:
    """The schedule of the project at hand; a project that cannot be read yet has none."""
    try:
        schedule = ProjectResource().load().config.schedule
    except EvalPipelineError:
        return []
    if schedule is None:
        return []

    @dg.schedule(
        name="nightly", job=EVALUATE, cron_schedule=schedule.cron, execution_timezone=schedule.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING, description="The current dataset version, system release and judge.",
    )  # fmt: skip
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        project = ProjectResource().load()
        config = project.config
        policy = config.schedule.policy if config.schedule else schedule.policy
        dataset = config.dataset_name()
        partition = key(project, dataset, config.datasets[dataset].tag, config.system_name(), config.judge_name())
        register(context.instance, partition)
        return dg.RunRequest(
            run_key=f"nightly-{context.scheduled_execution_time:%Y%m%dT%H%M}",
            partition_key=partition,
            run_config=run_config(Options(policy=policy)),
        )

    return [nightly]
