"""Readable keys of what is evaluated: a dataset version, and a configuration (system release, judge, scoring hash)."""

from __future__ import annotations

from eval_pipeline.stages.versioning import slug


def dataset_key(dataset: str, tag: str, version: str) -> str:
    """Such as `helpdesk@v4@1a2b3c4d`."""
    return f"{slug(dataset)}@{slug(tag)}@{version[:8]}"


def configuration_key(system: str, release: str, judge: str, scoring_sha256: str) -> str:
    """Such as `rag@9f31c2e@azure_mini@5e6f7a8b`."""
    return f"{slug(system)}@{slug(release)}@{slug(judge)}@{scoring_sha256[:8]}"
