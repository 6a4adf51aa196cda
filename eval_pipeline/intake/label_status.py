"""How far labelling has come: labels by metric, annotators, agreement, what waits to be settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.intake.datasets import read_lines
from eval_pipeline.intake.label_tasks import disagreements
from eval_pipeline.stages.calibration import people


def status(labels: pl.DataFrame, folder: Path) -> list[dict[str, Any]]:
    """One row per metric that has labels or a sheet.

    Keys: metric, label_count, human_count, text_count, annotators, shared_count (texts with two people or more),
    human_agreement (null under 30 shared), disagreement_count (not settled yet), handed_out_count, waiting_count (texts
    handed out that nobody labelled).

    Args:
        labels: `human_labels` rows of a dataset.
        folder: the dataset's; its `labels/sheets/` says what was handed out.
    """
    handed_out: dict[str, set[str]] = {}
    for path in sorted((folder / "labels" / "sheets").glob("*.jsonl")):
        for _, row in read_lines(path):
            handed_out.setdefault(row["metric"], set()).add(row["content_sha256"])
    names = sorted({*labels["metric"], *handed_out})
    return [_row(name, labels.filter(pl.col("metric") == name), handed_out.get(name, set())) for name in names]


def _row(metric: str, labels: pl.DataFrame, handed_out: set[str]) -> dict[str, Any]:
    human = labels.filter(pl.col("provenance") == "human")
    by_text = (
        human.filter(pl.col("annotator") != people.ADJUDICATED)
        .group_by("content_sha256")
        .agg(pl.col("annotator").n_unique())
    )
    return {
        "metric": metric, "label_count": labels.height, "human_count": human.height, "text_count": labels["content_sha256"].n_unique(),
        "annotators": sorted(set(labels["annotator"])), "shared_count": by_text.filter(pl.col("annotator") > 1).height,
        "human_agreement": people.human_agreement(human).value, "disagreement_count": len(disagreements(human, metric)),
        "handed_out_count": len(handed_out), "waiting_count": len(handed_out - set(human["content_sha256"])),
    }  # fmt: skip
