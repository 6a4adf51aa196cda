"""Everything that can be wrong with a dataset's version: moved content, row suites, rules about the set and its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import polars as pl

from eval_pipeline.config import DatasetConfig
from eval_pipeline.errors import DatasetNotFound
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets
from eval_pipeline.quality import history, rot
from eval_pipeline.quality.findings import Finding
from eval_pipeline.quality.validate import validate
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import EVALUATIONS, GOLDEN_ITEMS, SCORES

ITEM_NEEDS = {"user_input", "reference", "reference_contexts"}
NEWEST = 20
"""Evaluations whose scores tell dead and doubtful items."""


def check(project: Project, name: str, folder: Path, tag: str, today: date) -> list[Finding]:
    """Findings about one version, errors first.

    Args:
        name: the dataset's; it need not be configured. folder: where it is.
        tag: a tag, `latest` or the beginning of a hash.

    Raises:
        DatasetNotFound: no such version.
    """
    config = project.config.datasets.get(name) or DatasetConfig(path=str(folder))
    version = datasets.load(folder, tag)
    needs = sorted({field for metric in project.metrics().values() for field in metric.needs} & ITEM_NEEDS)
    found = [
        *moved(folder, tag),
        *validate(GOLDEN_ITEMS, version.items),
        *rot.check_items(
            version.items,
            previous=_parent(folder, version),
            minimum_sizes={stratum: one.minimum for stratum, one in config.strata.items()},
            stale_after_days=config.stale_after_days,
            today=today,
            source_sha256=datasets.source_hashes(project.root, version.items),
            needs=[field for field in needs if field != "reference"],  # the row suite looks at references
        ),
        *history.check_history(recent_scores(project, name)),
    ]
    return sorted(found, key=lambda one: one.severity != "error")


def rows(findings: Sequence[Finding]) -> pl.DataFrame:
    """Findings as a table to show: severity, rule, message, count, item_ids (the first 20)."""
    schema = {"severity": pl.String, "rule": pl.String, "message": pl.String, "count": pl.Int64, "item_ids": pl.String}
    shown = [(one.severity, one.rule, one.message, one.count, ", ".join(one.item_ids[:20])) for one in findings]
    return pl.DataFrame(shown, schema=schema, orient="row")


def moved(folder: Path, tag: str) -> list[Finding]:
    """Content that is not what its tag was given to, one finding per item."""
    found = []
    for one in datasets.edits(folder, tag):
        place = (
            f"{folder.name}@{one['tag']}: {one['item_id'] or 'content'} ({', '.join(one['fields'] or [one['change']])})"
        )
        ids = (one["item_id"],) if one["item_id"] else ()
        found.append(Finding("content_is_as_tagged", "error", f"{place} is not as it was tagged: restore it, or add it under a new tag",
                             f"{place}: 태그한 내용과 다릅니다. 되돌리거나 새 태그로 추가하세요", ids, 1))  # fmt: skip
    return found


def _parent(folder: Path, version: datasets.DatasetVersion) -> pl.DataFrame | None:
    """Items of the version before, null for the first or when its file is gone."""
    entry = next(one for one in datasets.log(folder) if one["tag"] == version.tag)
    if entry["parent_version"] is None:
        return None
    try:
        return datasets.load(folder, entry["parent_version"]).items
    except DatasetNotFound:
        return None


def recent_scores(project: Project, dataset: str) -> pl.DataFrame:
    """Scores of the newest complete evaluations of a dataset: evaluation_id, system, metric, item_id, value."""
    warehouse = Warehouse(project.warehouse)
    rows = warehouse.read(EVALUATIONS)
    chosen = rows.filter((pl.col("dataset") == dataset) & ~pl.col("is_partial") & ~pl.col("is_replay"))
    chosen = chosen.sort("evaluation_id").tail(NEWEST).select("evaluation_id", "system")
    parts: Sequence[pl.DataFrame] = [warehouse.read(SCORES, one) for one in chosen["evaluation_id"]]
    scores = pl.concat(parts) if parts else SCORES.frame()
    return scores.join(chosen, on="evaluation_id").select("evaluation_id", "system", "metric", "item_id", "value")
