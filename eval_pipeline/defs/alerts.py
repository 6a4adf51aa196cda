"""The sensor that tells people: finished runs and missed nights, each once. Words and rules are in `evaluation/alerts.py`."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import polars as pl
from dagster._utils.schedules import get_latest_completed_cron_tick

from eval_pipeline.defs.jobs import EVALUATE
from eval_pipeline.defs.resources import ProjectResource
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.evaluation.alerts import Ended, is_missed, of_missed, of_run
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.webhook import post
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import EVALUATIONS, GATE_DECISIONS

PROCESS_TAG = "eval_pipeline/process"
"""Runs with it were started at a terminal, whose user sees how they end."""
REMEMBERED = 200
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]


@dg.sensor(name="alerts", minimum_interval_seconds=60, default_status=dg.DefaultSensorStatus.RUNNING,
           description="Posts failed runs, bad decisions and missed nights to the webhook of `alerts`, each once.")  # fmt: skip
def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """One look: what is new is sent, oldest first; what could not be sent is tried again at the next look."""
    try:
        return dg.SkipReason(_look(context, ProjectResource().load()))
    except EvalPipelineError as error:
        return dg.SkipReason(str(error))


def _look(context: dg.SensorEvaluationContext, project: Project) -> str:
    config, now = project.config.alerts, datetime.now(UTC)
    if config is None:
        return "evaluation.yaml has no `alerts`"
    url = project.environment.get(config.webhook_env)
    if not url:
        return f"environment variable {config.webhook_env} is not set"
    if context.cursor is None:
        # What ended before anybody watched is no news.
        context.update_cursor(json.dumps({"since": now.isoformat(), "told": []}))
        return "watching from now on"
    seen = json.loads(context.cursor)
    sent = 0
    for name, text in _due(context.instance, project, datetime.fromisoformat(seen["since"]), set(seen["told"]), now):
        failure = post(url, text) if text else None
        if failure:
            context.log.error("An alert could not be sent: %s. It is tried again at the next look.", failure)
            break
        sent += text is not None
        seen["told"] = [*seen["told"], name][-REMEMBERED:]
    context.update_cursor(json.dumps(seen))
    return f"{sent} sent"


def _due(
    instance: dg.DagsterInstance, project: Project, since: datetime, told: set[str], now: datetime
) -> Iterator[tuple[str, str | None]]:
    """What ended or was missed since the sensor first looked and is not told: a name to remember, and the alert if any."""
    config, language = project.config.alerts, project.config.language
    assert config is not None
    filters = dg.RunsFilter(job_name=EVALUATE.name, statuses=ENDED, updated_after=since)
    for record in reversed(instance.get_run_records(filters, limit=REMEMBERED // 2)):
        run = record.dagster_run
        if run.run_id in told or PROCESS_TAG in run.tags:
            continue
        retried = run.tags.get("dagster/will_retry") == "true"
        yield run.run_id, None if retried else of_run(_ended(instance, project, run), config, language)
    due_at = missed_night(instance, project, since, now)
    if due_at is not None and f"missed {due_at.isoformat()}" not in told and "missed" in config.when:
        yield f"missed {due_at.isoformat()}", of_missed(due_at, language)


def missed_night(
    instance: dg.DagsterInstance, project: Project, since: datetime | None, now: datetime
) -> datetime | None:
    """The time of the schedule's last night when that did not start; null when it did, or nothing is scheduled."""
    schedule = project.config.schedule
    if schedule is None:
        return None
    due_at = get_latest_completed_cron_tick(schedule.cron, now, schedule.timezone)
    runs = instance.get_run_records(dg.RunsFilter(job_name=EVALUATE.name), limit=1)
    evaluations = Warehouse(project.warehouse).read(EVALUATIONS)["started_at"].to_list()
    started = [*evaluations, *(record.create_timestamp.astimezone(UTC) for record in runs)]
    return due_at if is_missed(due_at, since, started, now) else None


def _ended(instance: dg.DagsterInstance, project: Project, run: dg.DagsterRun) -> Ended:
    if run.status == dg.DagsterRunStatus.FAILURE:
        return Ended(run.run_id, error=_error(instance, run.run_id))
    evaluation_id, failed = None, []
    for entry in instance.all_logs(run.run_id):
        event = entry.dagster_event
        if event and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            found = event.asset_check_evaluation_data
            if not found.passed and found.severity == dg.AssetCheckSeverity.ERROR:
                failed.append(found.check_name)
        elif event and event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
            told = event.step_materialization_data.materialization.metadata.get("evaluation_id")
            evaluation_id = str(told.value) if told else evaluation_id
    if evaluation_id is None:
        return Ended(run.run_id)
    warehouse = Warehouse(project.warehouse)
    rows = warehouse.read(EVALUATIONS, evaluation_id).to_dicts()
    decisions = warehouse.read(GATE_DECISIONS, evaluation_id).filter(pl.col("rule") == "decision").to_dicts()
    own = [name for name in failed if name != "gate_decision"]  # the decision is told as such
    return Ended(run.run_id, row=next(iter(rows), None), decision=next(iter(decisions), None), failed_checks=own)


def _error(instance: dg.DagsterInstance, run_id: str) -> str:
    """The step's own error where there is one: Dagster wraps it."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        error = entry.dagster_event.step_failure_data.error if entry.dagster_event else None
        if error is not None:
            return (error.cause or error).message
    return "the run's process is gone, or it never began"
