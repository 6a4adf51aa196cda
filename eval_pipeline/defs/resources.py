"""What the assets need from outside: the project and the options of a run. The only place in `defs/` that reads
environment variables.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from eval_pipeline.errors import ExtraMissing, SettingInvalid
from eval_pipeline.evaluation.judges import Limits
from eval_pipeline.evaluation.progress import Progress, Silent
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options
from eval_pipeline.vocabulary import Policy

REMOTE_EXECUTORS = {
    "dask": ("dagster_dask", "dask_executor"),
    "celery": ("dagster_celery", "celery_executor"),
    "kubernetes": ("dagster_k8s", "k8s_job_executor"),
}
"""Module and name of the executor that each extra brings."""


def shard_count() -> int:
    """Shards of `warm_ledger`: `EVAL_SHARDS`, the same on every machine of a deployment; four when unset.

    Raises:
        SettingInvalid: it is no whole number above zero.
    """
    return _whole_number("EVAL_SHARDS", 4)


def _whole_number(name: str, default: int) -> int:
    given = os.environ.get(name) or str(default)
    if not given.isdecimal() or int(given) < 1:
        raise SettingInvalid(name=name, value=given, allowed="a whole number above zero")
    return int(given)


def sensor_seconds() -> int:
    """Seconds between two looks of a sensor: `EVAL_SENSOR_SECONDS`, sixty when unset.

    Raises:
        SettingInvalid: it is no whole number above zero.
    """
    return _whole_number("EVAL_SENSOR_SECONDS", 60)


def executor() -> dg.ExecutorDefinition:
    """Who runs the shards of `warm_ledger`: `EVAL_EXECUTOR`, this process when unset.

    Raises:
        SettingInvalid: there is no such executor.
        ExtraMissing: its package is not installed.
    """
    given = os.environ.get("EVAL_EXECUTOR") or "in_process"
    match given:
        case "in_process":
            return dg.in_process_executor
        case "multiprocess":
            return dg.multiprocess_executor
        case "dask" | "celery" | "kubernetes":
            module, name = REMOTE_EXECUTORS[given]
            try:
                return getattr(import_module(module), name)
            except ModuleNotFoundError as error:
                raise ExtraMissing(feature=f"EVAL_EXECUTOR={given}", extra=given) from error
    allowed = ", ".join(("in_process", "multiprocess", *REMOTE_EXECUTORS))
    raise SettingInvalid(name="EVAL_EXECUTOR", value=given, allowed=allowed)


class ProjectResource(dg.ConfigurableResource):
    """The evaluation project: `EVAL_PROJECT`, else the nearest `evaluation.yaml` above the working directory."""

    folder: str = ""
    _progress: Progress = PrivateAttr(default_factory=Silent)

    def load(self) -> Project:
        """Reads the configuration anew, so that an edit counts from the next step on."""
        environment = dict(os.environ) | ({"EVAL_PROJECT": self.folder} if self.folder else {})
        found = Project.find(Path.cwd(), environment)
        env_file = found.root / ".env"
        if not env_file.is_file():
            return found
        from dotenv import dotenv_values

        values = {name: value for name, value in dotenv_values(env_file).items() if value is not None}
        return Project(found.root, found.config, values | environment)

    @property
    def progress(self) -> Progress:
        return self._progress

    def showing(self, progress: Progress) -> "ProjectResource":
        """The same resource, telling how far each step has come."""
        self._progress = progress
        return self


class WarmTarget(dg.ConfigurableResource):
    """What `warm_ledger` asks about, by the names of `evaluation.yaml`; empty is the project's default."""

    dataset: str = ""
    tag: str = ""
    system: str = ""
    judge: str = ""

    def names(self, project: Project) -> tuple[str, str, str, str]:
        """Dataset, tag, system and judge."""
        config = project.config
        dataset = config.dataset_name(self.dataset or None)
        return (
            dataset,
            self.tag or config.datasets[dataset].tag,
            config.system_name(self.system or None),
            config.judge_name(self.judge or None),
        )


class RunOptions(dg.ConfigurableResource):
    """What one run does differently from the configuration; a re-execution keeps it."""

    limit: int = 0
    metrics: list[str] = []
    max_calls: int = -1
    max_cost_usd: float = -1.0
    policy: str = Policy.NIGHTLY.value
    retry_invalid: bool = False
    refresh: str = ""
    batch: bool = False
    responses_of: str = ""

    def options(self) -> Options:
        """As the steps take them; the sentinels of the flat form become null."""
        return Options(
            limit=self.limit or None,
            metrics=tuple(self.metrics),
            limits=Limits(
                None if self.max_calls < 0 else self.max_calls, None if self.max_cost_usd < 0 else self.max_cost_usd
            ),
            policy=Policy(self.policy),
            retry_invalid=self.retry_invalid,
            refresh={"": None, "refresh": True, "reuse": False}[self.refresh],
            batch=self.batch,
            responses_of=self.responses_of or None,
        )


def run_config(options: Options) -> dict[str, Any]:
    """Run configuration that carries the options, with a quiet console; the event log stays complete."""
    return {
        "resources": {
            "run_options": {
                "config": {
                    "limit": options.limit or 0,
                    "metrics": list(options.metrics),
                    "max_calls": -1 if options.limits.max_calls is None else options.limits.max_calls,
                    "max_cost_usd": -1.0 if options.limits.max_cost_usd is None else options.limits.max_cost_usd,
                    "policy": options.policy.value,
                    "retry_invalid": options.retry_invalid,
                    "refresh": {None: "", True: "refresh", False: "reuse"}[options.refresh],
                    "batch": options.batch,
                    "responses_of": options.responses_of or "",
                }
            }
        },
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
