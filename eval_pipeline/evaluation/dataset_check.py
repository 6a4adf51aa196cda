"""Everything that can be wrong with a dataset's version: moved content, row suites, rules about the set and its history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from eval_pipeline.config import DatasetConfig
from eval_pipeline.errors import DatasetNotFound, NotWritable
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets
from eval_pipeline.quality import history, rot
from eval_pipeline.quality.findings import Finding
from eval_pipeline.quality.validate import data_docs as write_data_docs
from eval_pipeline.quality.validate import validate
from eval_pipeline.stages.calibration import ADJUDICATED
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import EVALUATIONS, GATE_DECISIONS, GOLDEN_ITEMS, SCORES
from eval_pipeline.vocabulary import Provenance

ITEM_NEEDS = {"user_input", "reference", "reference_contexts"}
SECOND_LOOK = timedelta(days=30)
"""Labels of one text this far apart tell whether people changed their mind; nearer ones whether they agree."""
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
    scores = recent_scores(project, name)
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
        *history.check_history(scores, detectable(project, scores)),
        *history.label_drift(*relabelled(folder, name)),
    ]
    return sorted(found, key=lambda one: one.severity != "error")


def data_docs(folder: Path, tag: str, target: Path) -> Path:
    """Writes Great Expectations' own pages about the row rules of one version; returns the page to open.

    Raises:
        NotWritable: the target cannot be written.
    """
    try:
        return write_data_docs(GOLDEN_ITEMS, datasets.load(folder, tag).items, target)
    except OSError as error:
        raise NotWritable(path=target, reason=error.strerror or str(error)) from error


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


def detectable(project: Project, scores: pl.DataFrame) -> dict[str, float]:
    """The smallest drop by metric that the newest of these evaluations would have shown, as its gate worked it out."""
    newest = scores["evaluation_id"].max()
    if newest is None:
        return {}
    rules = Warehouse(project.warehouse).read(GATE_DECISIONS, str(newest))
    rules = rules.filter(pl.col("rule").str.starts_with("regression")).select("metric", "numbers")
    known = [(metric, json.loads(numbers).get("detectable")) for metric, numbers in rules.iter_rows()]
    found: dict[str, float] = {}
    for metric, effect in known:
        if effect is not None:
            found[metric] = min(effect, found.get(metric, effect))
    return found


def relabelled(folder: Path, name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """First and newest human label of each text that was labelled again at least `SECOND_LOOK` later."""
    both = pl.concat([datasets.replaced_labels(folder, name), datasets.labels(folder, name)])
    day = pl.col("labelled_at").str.slice(0, 10).str.to_date(strict=False).alias("day")
    human = both.filter((pl.col("provenance") == Provenance.HUMAN) & (pl.col("annotator") != ADJUDICATED))
    dated = human.with_columns(day).drop_nulls("day").sort("day", maintain_order=True)
    texts = dated.group_by("metric", "content_sha256", maintain_order=True)
    first, newest = (
        texts.agg(pl.exclude("metric", "content_sha256").first()),
        texts.agg(pl.exclude("metric", "content_sha256").last()),
    )
    is_later = newest["day"] - first["day"] >= SECOND_LOOK
    return first.filter(is_later), newest.filter(is_later)
