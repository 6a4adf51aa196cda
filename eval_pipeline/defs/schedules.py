"""The nightly schedule, from `evaluation.yaml`; nothing when the project has none."""

import dagster as dg

from eval_pipeline.config import ScheduleConfig
from eval_pipeline.defs.jobs import EVALUATE
from eval_pipeline.defs.requests import request
from eval_pipeline.defs.resources import ProjectResource
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.evaluation.due import nightly as nightly_due
from eval_pipeline.evaluation.steps import Options


def nightly_schedule() -> ScheduleConfig | None:
    """The schedule of the project at hand; a project that cannot be read yet has none."""
    try:
        return ProjectResource().load().config.schedule
    except EvalPipelineError:
        return None


def build_schedules() -> list[dg.ScheduleDefinition]:
    """The nightly schedule. Time and zone are those of the moment when the code location is loaded."""
    schedule = nightly_schedule()
    if schedule is None:
        return []

    @dg.schedule(
        name="nightly", job=EVALUATE, cron_schedule=schedule.cron, execution_timezone=schedule.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING, description="The current dataset version, system release and judge.",
    )  # fmt: skip
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Reads `evaluation.yaml` anew, so that tonight's run is of what it says tonight."""
        try:
            project = ProjectResource().load()
            due = nightly_due(project, f"nightly {context.scheduled_execution_time:%Y-%m-%dT%H:%M%z}")
        except EvalPipelineError as error:
            return dg.SkipReason(str(error))
        now = project.config.schedule or schedule
        return request(context.instance, due, Options(policy=now.policy))

    return [nightly]
