"""Runs for the instance's queue, where a daemon is there to take them."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
from dagster._cli.job import _create_run  # what `dagster job launch` does, without loading the code for each run
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._daemon.controller import all_daemons_live

JOB = "evaluate"


def is_served(instance: dg.DagsterInstance) -> bool:
    """Whether a daemon is there to launch what is queued."""
    return instance.is_persistent and all_daemons_live(instance)


def submit(instance: dg.DagsterInstance, workspace_file: Path, requests: Sequence[dg.RunRequest]) -> list[str]:
    """Puts the runs into the queue and returns their ids; the code is loaded once, from the workspace file.

    Raises:
        DagsterError: the workspace cannot be loaded, or none of its code locations has the job.
    """
    target = WorkspaceFileTarget(paths=[str(workspace_file)])
    with WorkspaceProcessContext(instance, target, version=dg.__version__, code_server_log_level="ERROR") as process:
        workspace = process.create_request_context()
        location, repository = next(
            (location, repository)
            for location in workspace.code_locations
            for repository in location.get_repositories().values()
            if repository.has_job(JOB)
        )
        job = repository.get_full_job(JOB)
        runs = [
            _create_run(
                instance=instance, code_location=location, remote_repo=repository, remote_job=job,
                run_config=one.run_config, tags=_tags(one), op_selection=None, run_id=None,
            )
            for one in requests
        ]  # fmt: skip
        return [instance.submit_run(run.run_id, workspace).run_id for run in runs]


def _tags(one: dg.RunRequest) -> dict[str, str]:
    """The request's tags and those of its partition, whole and by dimension."""
    partition = one.partition_key
    if not isinstance(partition, dg.MultiPartitionKey):
        return dict(one.tags)
    dimensions = {f"dagster/partition/{name}": key for name, key in partition.keys_by_dimension.items()}
    return {**one.tags, **dimensions, "dagster/partition": str(partition)}
