"""Several people on the same texts: one label per text, and how far two people agree. No judge is here."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import polars as pl

from eval_pipeline.stats.agreement import quadratic_weighted_kappa
from eval_pipeline.stats.ceilings import ceiling_by_human_noise
from eval_pipeline.stats.correlation import spearman
from eval_pipeline.stats.counts import Numbers
from eval_pipeline.stats.stat import Stat, undefined

ADJUDICATED = "adjudicated"
"""The annotator whose label settles a text; it is no second opinion."""
DOUBLE_LABELLED = 30
"""Texts two people must share before their agreement is shown."""


def per_text(labels: pl.DataFrame) -> pl.DataFrame:
    """One row per labelled text: the adjudicated label where there is one, else the mean over people.

    Columns: content_sha256, human, cluster_id, inclusion_probability, is_unanimous (null with one annotator).
    """
    own = pl.col("annotator") == ADJUDICATED
    settled = pl.col("value").filter(own).first()
    opinions = pl.col("value").filter(~own)
    return (
        labels.unique(subset=["content_sha256", "annotator"], keep="last", maintain_order=True)
        .group_by("content_sha256")
        .agg(
            pl.coalesce(settled, opinions.mean()).alias("human"),
            pl.col("cluster_id").first(),
            pl.col("inclusion_probability").first(),
            pl.when(opinions.len() > 1).then(opinions.n_unique() == 1).alias("is_unanimous"),
        )
        .sort("content_sha256")
    )


def two_people(labels: pl.DataFrame) -> tuple[list[float], list[float]]:
    """Labels of the two annotators with the most texts in common; empty with one annotator."""
    people = labels.filter(pl.col("annotator") != ADJUDICATED)
    by_annotator = {
        str(name): dict(part.select("content_sha256", "value").iter_rows())
        for (name,), part in people.group_by("annotator")
    }
    shared = {
        (a, b): sorted(by_annotator[a].keys() & by_annotator[b].keys())
        for a, b in combinations(sorted(by_annotator), 2)
    }
    if not shared:
        return [], []
    (first, second), texts = max(shared.items(), key=lambda entry: len(entry[1]))
    return [by_annotator[first][text] for text in texts], [by_annotator[second][text] for text in texts]


def human_agreement(labels: pl.DataFrame) -> Stat:
    """Rank correlation of two annotators; undefined below 30 shared texts."""
    return agreement(*two_people(labels))["human_agreement"]


def agreement(first: Numbers, second: Numbers) -> dict[str, Stat]:
    """How far two people agree, and the ceiling that leaves for any judge (from their weighted kappa)."""
    rho = spearman(first, second) if len(first) else undefined("human_agreement", "one_annotator")
    names = ("human_agreement", "human_agreement_kappa", "rho_ceiling_by_human_noise")
    if rho.n < DOUBLE_LABELLED:
        reason = "n_too_small" if len(first) else "one_annotator"
        return {name: undefined(name, reason, n=rho.n, n_dropped=rho.n_dropped) for name in names}
    kappa = quadratic_weighted_kappa(first, second)
    return dict(zip(names, (rho, kappa, ceiling_by_human_noise(kappa)), strict=True))


def as_json(agreed: dict[str, Stat]) -> dict[str, Any]:
    """The statistics by name, as JSON objects."""
    return {name: stat.to_dict() for name, stat in agreed.items()}
