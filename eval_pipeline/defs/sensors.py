"""Sensors: a new dataset version, a new system release or definition, a changed judge, ended batches. What is new is found in
`evaluation/due.py`; each look reads `evaluation.yaml` anew.
"""

from collections.abc import Callable

import dagster as dg

from eval_pipeline.defs.jobs import EVALUATE
from eval_pipeline.defs.requests import request
from eval_pipeline.defs.resources import ProjectResource, sensor_seconds
from eval_pipeline.defs.schedules import nightly_schedule
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.evaluation.due import News, changed_judge, changed_systems, ended_batches, new_dataset_versions
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options
from eval_pipeline.vocabulary import Policy

Look = Callable[[Project, str | None], News]
LOOKS: dict[str, tuple[Look, str]] = {
    "dataset_versions": (new_dataset_versions, "A new dataset version is evaluated with the systems it is used with."),
    "system_releases": (
        changed_systems,
        "A new release or changed definition of a system is evaluated on its datasets.",
    ),
    "judge_changes": (changed_judge, "A changed judge judges the stored responses of the window beside the old one."),
    "batches": (ended_batches, "What a judge's batches answered is brought in, and evaluations that waited go on."),
}
"""How each sensor looks, and what it says it does."""


def build_sensors() -> list[dg.SensorDefinition]:
    """The sensors; they run by themselves where the project has a schedule."""
    running = nightly_schedule() is not None
    status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED
    return [_sensor(name, look, description, status) for name, (look, description) in LOOKS.items()]


def _sensor(name: str, look: Look, description: str, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        name=name,
        job=EVALUATE,
        minimum_interval_seconds=sensor_seconds(),
        default_status=status,
        description=description,
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return tick(look, context)

    return sensor


def tick(look: Look, context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """One look: runs for what is due, or why there are none."""
    try:
        project = ProjectResource().load()
        news = look(project, context.cursor)
    except EvalPipelineError as error:
        return dg.SkipReason(str(error))
    for remark in news.remarks:
        context.log.warning(remark)
    options = Options(policy=project.config.schedule.policy if project.config.schedule else Policy.NIGHTLY)
    requests = [request(context.instance, due, options) for due in news.due]
    reason = None if requests else " ".join(news.remarks) or "Nothing new."
    return dg.SensorResult(run_requests=requests, skip_reason=reason, cursor=news.seen)
