"""Runs one evaluation in this process, recorded in the project's Dagster instance."""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from filelock import FileLock

from eval_pipeline.defs.alerts import PROCESS_TAG, missed_night
from eval_pipeline.defs.partitions import register
from eval_pipeline.defs.queueing import JOB, is_served, submit
from eval_pipeline.defs.requests import EVALUATION_TAG, RELEASE_TAG, request
from eval_pipeline.defs.resources import ProjectResource, run_config
from eval_pipeline.defs.steps import PARTITION_TAG
from eval_pipeline.errors import Interrupted
from eval_pipeline.evaluation.due import Due
from eval_pipeline.evaluation.partitions import Combination, combine
from eval_pipeline.evaluation.progress import Progress, Silent
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.reading import evaluations
from eval_pipeline.evaluation.steps import Options

RUNS_LOOKED_AT = 200
"""Runs that `--resume` looks back over for one that is unfinished."""


OPEN = frozenset(
    {
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.FAILURE,
    }
)
"""Statuses of runs that somebody may have to look at."""


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
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "yes")  # a home without a dagster.yaml has it on
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
    of = combine(project, target.dataset, target.tag, target.system, target.judge)
    return evaluate_combination(project, of, options, progress, evaluation_id)


def evaluate_combination(project: Project, of: Combination, options: Options, progress: Progress | None = None,
                         evaluation_id: str | None = None) -> str:  # fmt: skip
    """The same for a combination whose release is known."""
    from eval_pipeline.definitions import build_definitions

    resource = ProjectResource(folder=str(project.root)).showing(progress or Silent())
    job = build_definitions({"project": resource}).resolve_job_def(JOB)
    tags = {PROCESS_TAG: f"{socket.gethostname()}:{os.getpid()}", RELEASE_TAG: of.release} | (
        {EVALUATION_TAG: evaluation_id} if evaluation_id else {}
    )
    # An interruption inside a callback is logged there with a traceback before it gets here as one message.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    with instance(project) as opened:
        partition = register(opened, of)
        try:
            result = job.execute_in_process(
                instance=opened, partition_key=partition, run_config=run_config(options), tags=tags, raise_on_error=True
            )
        except (DagsterExecutionInterruptedError, KeyboardInterrupt):
            raise Interrupted from None
        made = result.get_asset_materialization_events()
        return next(str(event.materialization.metadata["evaluation_id"].value) for event in made
                    if "evaluation_id" in event.materialization.metadata)  # fmt: skip


def backfill(project: Project, due: Sequence[Due], options: Options) -> Iterator[tuple[Due, str | None, str | None]]:
    """Starts each due evaluation and tells run id or evaluation id: queued where a daemon runs, else run here in order.

    Raises:
        EvalPipelineError: as the step that failed raised it; what was done before is kept.
    """
    with instance(project) as opened:
        if is_served(opened):
            requests = [request(opened, one, options) for one in due]
            yield from zip(due, submit(opened, project.root / "workspace.yaml", requests), repeat(None), strict=False)
            return
    for one in due:
        made = evaluate_combination(project, one.of, replace(options, responses_of=one.responses_of))
        yield one, None, made


def unfinished(project: Project, target: Target) -> str | None:
    """The newest evaluation of this target that was killed, failed or stopped, or was only prepared; null for none.

    An evaluation of another target is left alone: its responses are not this one's.
    """
    of = combine(project, target.dataset, target.tag, target.system, target.judge)
    partition = f"{of.configuration_key}|{of.dataset_key}"
    with instance(project) as opened:
        over = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.SUCCESS]
        records = opened.get_run_records(dg.RunsFilter(statuses=over), limit=RUNS_LOOKED_AT)
        done = _done(opened, project, records)
        names = (_evaluation_id(opened, record) for record in records if partition in _partitions(record))
        return next((name for name in names if name not in done), None)


def open_runs(project: Project) -> list[dict[str, object]]:
    """Runs of the instance that are not done, and those that failed, newest first; the command that goes on is `run --resume`."""
    with instance(project) as opened:
        records = opened.get_run_records(limit=RUNS_LOOKED_AT)
        done = _done(opened, project, records)
        return _missed(opened, project) + [
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
            if record.dagster_run.status in OPEN and _evaluation_id(opened, record) not in done
        ]


def _missed(opened: dg.DagsterInstance, project: Project) -> list[dict[str, object]]:
    """The night that did not start, as a row beside the runs; a project that never evaluated has missed nothing."""
    first = min((row["started_at"] for row in evaluations(project).iter_rows(named=True)), default=None)
    due_at = missed_night(opened, project, first, datetime.now(UTC))
    if due_at is None:
        return []
    return [{"run_id": None, "status": "MISSED", "started_at": due_at.isoformat(), "partition": None,
             "resume": "eval-pipeline run --gate nightly"}]  # fmt: skip


def _evaluation_id(opened: dg.DagsterInstance, record: dg.RunRecord) -> str:
    """The evaluation of a run: what its tag says, else named by its root run."""
    run = record.dagster_run
    root = (opened.get_run_record_by_id(run.root_run_id) if run.root_run_id else None) or record
    started = root.create_timestamp.astimezone(UTC)
    return run.tags.get(EVALUATION_TAG) or f"{started:%Y%m%dT%H%M%S}-{root.dagster_run.run_id[:8]}"


def _partitions(record: dg.RunRecord) -> set[str]:
    tags = record.dagster_run.tags
    return {tags[name] for name in ("dagster/partition", PARTITION_TAG) if name in tags}


def _done(opened: dg.DagsterInstance, project: Project, records: Sequence[dg.RunRecord]) -> set[str]:
    """Evaluations that need nothing more: they have their row, were not stopped, and a run of theirs went through.

    A run that died between the row and the report left the row, and is not done.
    """
    from eval_pipeline.evaluation.steps import STOPPED
    from eval_pipeline.store.warehouse import Warehouse
    from eval_pipeline.tables import EVALUATIONS

    through = {_evaluation_id(opened, one) for one in records if one.dagster_run.status == dg.DagsterRunStatus.SUCCESS}
    rows = Warehouse(project.warehouse).read(EVALUATIONS).select("evaluation_id", "partial_reason").iter_rows()
    return {name for name, reason in rows if name in through and not (reason or "").startswith(STOPPED)}
