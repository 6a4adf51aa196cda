"""The only home of Dagster: assets, checks, partitions, jobs, schedules and resources. No logic."""

import warnings

# Partitioned asset checks are in preview; the pin in requirements.lock says which preview.
warnings.filterwarnings("ignore", message=".*AssetCheckSpec is currently in preview", module="dagster")
warnings.filterwarnings("ignore", message="Specifying a partitions_def on an AssetCheckSpec")
