"""Runs one evaluation in this process, recorded in the project's Dagster instance."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from filelock import FileLock

from eval_pipeline.defs.partitions import key, register
from eval_pipeline.defs.resources import ProjectResource, run_config
from eval_pipeline.errors import Interrupted
from eval_pipeline.evaluation.progress import Progress, Silent
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options

EVALUATION_TAG = "eval_pipeline/evaluation_id"
PROCESS_TAG = "eval_pipeline/process"
JOB = "evaluate"


@dataclass(frozen=True, slots=True)
class Target:
    """What to evaluate, by the names of evaluation.yaml."""

    dataset: str
    tag: str
    system: str
    judge: str


@contextmanager
def instance(project: Project) -> Iterator[dg.DagsterInstance]:
    """The project's Dagster instance: created once under a lock, dead runs of this machine ended first."""
    home = Path(project.environment.get("DAGSTER_HOME") or project.root / "dagster_home")
    home.mkdir(parents=True, exist_ok=True)
    os.environ["DAGSTER_HOME"] = str(home)
    # Several processes that open an empty DAGSTER_HOME at once can break it for good.
    with FileLock(home / ".create.lock"):
        opened = dg.DagsterInstance.get()
    with opened:
        end_dead_runs(opened)
        yield opened


def end_dead_runs(opened: dg.DagsterInstance) -> None:
    """Ends runs whose process is gone: a killed run stays STARTED, and its pool slot would block every later run."""
    for run in opened.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])):
        host, _, pid = run.tags.get(PROCESS_TAG, "").rpartition(":")
        if host == socket.gethostname() and not Path(f"/proc/{pid}").exists():
            opened.report_run_failed(run, "The process of this run is gone.")
            opened.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def evaluate(project: Project, target: Target, options: Options, progress: Progress | None = None,
             evaluation_id: str | None = None) -> str:  # fmt: skip
    """Runs the whole job for one target and returns the evaluation id.

    Args:
        evaluation_id: go on with this one instead of making a new one.

    Raises:
        EvalPipelineError: as the step that failed raised it.
    """
    from eval_pipeline.definitions import build_definitions

    resource = ProjectResource(folder=str(project.root)).showing(progress or Silent())
    job = build_definitions({"project": resource}).resolve_job_def(JOB)
    partition = key(project, target.dataset, target.tag, target.system, target.judge)
    tags = {PROCESS_TAG: f"{socket.gethostname()}:{os.getpid()}"} | (
        {EVALUATION_TAG: evaluation_id} if evaluation_id else {}
    )
    # An interruption inside a callback is logged there with a traceback before it gets here as one message.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    with instance(project) as opened:
        register(opened, partition)
        try:
            result = job.execute_in_process(
                instance=opened, partition_key=partition, run_config=run_config(options), tags=tags, raise_on_error=True
            )
        except (DagsterExecutionInterruptedError, KeyboardInterrupt):
            raise Interrupted from None
        made = result.get_asset_materialization_events()
        return next(str(event.materialization.metadata["evaluation_id"].value) for event in made
                    if "evaluation_id" in event.materialization.metadata)  # fmt: skip


def unfinished(project: Project) -> str | None:
    """The newest evaluation of this project that has responses but no `evaluations` row, or was stopped; null for none."""
    from eval_pipeline.store.warehouse import Warehouse
    from eval_pipeline.tables import RESPONSES

    whole = _finished(project)
    started = [name for name in Warehouse(project.warehouse).values(RESPONSES) if name not in whole]
    return max(started, default=None)


def open_runs(project: Project) -> list[dict[str, object]]:
    """Runs of the instance that are not done, and those that failed, newest first; the command that goes on is `run --resume`."""
    with instance(project) as opened:
        statuses = [
            dg.DagsterRunStatus.QUEUED,
            dg.DagsterRunStatus.STARTING,
            dg.DagsterRunStatus.STARTED,
            dg.DagsterRunStatus.FAILURE,
        ]
        records = opened.get_run_records(dg.RunsFilter(statuses=statuses), limit=20)
        finished = _finished(project)
        return [
            {
                "run_id": record.dagster_run.run_id,
                "status": record.dagster_run.status.value,
                "started_at": record.create_timestamp.isoformat(),
                "partition": record.dagster_run.tags.get("dagster/partition"),
                "resume": "eval-pipeline run --resume"
                if record.dagster_run.status == dg.DagsterRunStatus.FAILURE
                else None,
            }
            for record in records
            if _evaluation_id(record) not in finished
        ]


def _evaluation_id(record: dg.RunRecord) -> str:
    run = record.dagster_run
    started = record.create_timestamp.astimezone(UTC)
    return run.tags.get(EVALUATION_TAG) or f"{started:%Y%m%dT%H%M%S}-{(run.root_run_id or run.run_id)[:8]}"


def _finished(project: Project) -> set[str]:
    """Evaluations that have their row and were not stopped: a failed try of theirs needs nothing more."""
    from eval_pipeline.evaluation.steps import STOPPED
    from eval_pipeline.store.warehouse import Warehouse
    from eval_pipeline.tables import EVALUATIONS

    rows = Warehouse(project.warehouse).read(EVALUATIONS).select("evaluation_id", "partial_reason").iter_rows()
    return {name for name, reason in rows if not (reason or "").startswith(STOPPED)}
