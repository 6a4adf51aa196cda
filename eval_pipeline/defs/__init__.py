"""The only home of Dagster: assets, checks, partitions, jobs, schedules, sensors and resources. No logic."""
