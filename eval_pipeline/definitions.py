"""The one place where everything is assembled for Dagster. No asset, check or resource is implemented here."""

from collections.abc import Mapping

import dagster as dg

from eval_pipeline.defs import alerts, assets, checks, jobs, resources, schedules, sensors


def build_definitions(overrides: Mapping[str, object] | None = None) -> dg.Definitions:
    """All definitions of the project; `overrides` replaces resources by name, for tests and for the command line."""
    return dg.Definitions(
        assets=dg.load_assets_from_modules([assets]),
        asset_checks=dg.load_asset_checks_from_modules([checks]),
        jobs=jobs.JOBS,
        schedules=schedules.build_schedules(),
        sensors=[*sensors.build_sensors(), alerts.alerts],
        resources={
            "project": resources.ProjectResource(),
            "run_options": resources.RunOptions(),
            "target": resources.WarmTarget(),
            **(overrides or {}),
        },
        executor=dg.in_process_executor,
    )


defs = build_definitions()
