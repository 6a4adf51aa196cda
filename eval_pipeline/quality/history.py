"""Rules about items over many evaluations and labels over time: dead and doubtful items, saturation, label drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from eval_pipeline.quality.findings import Finding
from eval_pipeline.quality.rot import finding
from eval_pipeline.stats.agreement import quadratic_weighted_kappa
from eval_pipeline.stats.drift import dead_items, item_discrimination, saturation

RELABEL_BELOW = 0.6
"""Weighted kappa of old and new labels under which the label set needs relabelling."""


def check_history(scores: pl.DataFrame, detectable: Mapping[str, float] | None = None) -> list[Finding]:
    """What the scores of many evaluations say of the items.

    Args:
        scores: columns evaluation_id, system, metric, item_id, value; one row per evaluation, metric and item.
        detectable: minimum detectable effect by metric, for saturation.
    """
    found: list[Finding] = []
    for (metric,), part in scores.group_by("metric", maintain_order=True):
        found += [*_dead(str(metric), part), *_doubtful(str(metric), part)]
        effect = (detectable or {}).get(str(metric))
        if effect is not None:
            found += _saturated(str(metric), part, effect)
    return found


def _table(part: pl.DataFrame, row: str) -> tuple[list[str], list[str], list[list[float | None]]]:
    """Row names, item ids, and mean values by row and item."""
    wide = part.pivot("item_id", index=row, values="value", aggregate_function="mean", maintain_order=True)
    return [str(name) for name in wide[row]], wide.columns[1:], [list(values) for values in wide.drop(row).iter_rows()]


def _dead(metric: str, part: pl.DataFrame) -> Iterator[Finding]:
    evaluations, item_ids, runs = _table(part, "evaluation_id")
    systems = dict(part.select("evaluation_id", "system").unique().iter_rows())
    dead = dead_items(item_ids, runs, [systems[name] for name in evaluations])
    if dead.is_rotten:
        yield from finding("dead_items", "warning", map(str, dead.item_ids), f"{metric}: {{n}} items scored the same in every run; only {dead.live_count} can show a change",
                           f"{metric}: 모든 실행에서 점수가 같은 항목 {{n}}개; 변화를 보일 수 있는 항목은 {dead.live_count}개뿐입니다")  # fmt: skip


def _doubtful(metric: str, part: pl.DataFrame) -> Iterator[Finding]:
    _, item_ids, rows = _table(part, "system")
    stats = item_discrimination(rows)
    ids = [item_id for item_id, stat in zip(item_ids, stats, strict=True) if stat.value is not None and stat.value < 0]
    yield from finding("negative_discrimination", "warning", ids, f"{metric}: on {{n}} items better systems score worse: check the references",
                       f"{metric}: 더 나은 시스템이 더 낮은 점수를 받는 항목 {{n}}개: 정답을 확인하세요")  # fmt: skip


def _saturated(metric: str, part: pl.DataFrame, detectable: float) -> Iterator[Finding]:
    newest = part.filter(pl.col("evaluation_id") == part["evaluation_id"].max()).drop_nulls("value")
    if newest.is_empty():
        return
    values = newest["value"].to_list()
    stat = saturation(sum(values) / len(values), detectable)
    if stat.details["is_saturated"]:
        yield from finding("saturation", "warning", newest["item_id"], f"{metric}: headroom {stat.value:.3f} is under twice the detectable {detectable:.3f}: the set can no longer show improvement",
                           f"{metric}: 남은 폭 {stat.value:.3f}이 검출 가능한 차이 {detectable:.3f}의 두 배보다 작아 개선을 더 보일 수 없습니다")  # fmt: skip


def label_drift(old: pl.DataFrame, new: pl.DataFrame) -> list[Finding]:
    """Whether people still label the same texts as before.

    Args:
        old: `human_labels` rows. new: labels of the same texts given later.
    """
    both = old.join(new, on=["metric", "content_sha256"], suffix="_new")
    found: list[Finding] = []
    for (metric,), part in both.group_by("metric", maintain_order=True):
        kappa = quadratic_weighted_kappa(part["value"].to_list(), part["value_new"].to_list())
        if kappa.value is not None and kappa.value < RELABEL_BELOW:
            moved = part.filter(pl.col("value") != pl.col("value_new"))["item_id"]
            found += finding("label_drift", "warning", moved, f"{metric}: {{n}} labels changed, weighted kappa {kappa.value:.2f} < {RELABEL_BELOW}: relabel",
                             f"{metric}: 라벨 {{n}}개가 달라졌고 가중 카파 {kappa.value:.2f} < {RELABEL_BELOW}: 다시 라벨링하세요")  # fmt: skip
    return found
