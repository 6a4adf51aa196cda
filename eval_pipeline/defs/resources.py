"""What the assets need from outside: the project and the options of a run. The only place in `defs/` that reads
environment variables.
"""

import os
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from eval_pipeline.evaluation.judges import Limits
from eval_pipeline.evaluation.progress import Progress, Silent
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options
from eval_pipeline.vocabulary import Policy


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
                }
            }
        },
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
