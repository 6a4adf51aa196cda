"""Frozen questions asked anew: only the judge can move their grades. Which are frozen, how they are compared, what that means.

Asking them is `evaluation/canary.py`; the test is `stats/drift.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from eval_pipeline.stages.gating.case import LISTED_ITEMS, Case, Rule, p_value, signed
from eval_pipeline.stats.drift import canary as drift
from eval_pipeline.stats.rates import clopper_pearson
from eval_pipeline.stats.stat import Stat
from eval_pipeline.vocabulary import Decision

PREFIX = "canary: "
"""What precedes a metric's name where its verdicts are about frozen questions: paid for, and no score rests on them."""
LEAST = 50
"""Items below which the test says nothing."""
QUESTION = ["item_id", "part_source", "part_index", "template_id", "sample_index"]


@dataclass(frozen=True, slots=True)
class Canary:
    """One metric's frozen items, then and now.

    Attributes:
        reference_id: the evaluation whose replies are the reference.
        item_count: items asked about.
        shift: mean grade now minus then, with p; undefined under 50 items with a grade on both sides.
        moved_ids: items whose grade differs.
    """

    metric: str
    reference_id: str
    item_count: int
    shift: Stat
    moved_ids: tuple[str, ...]

    @property
    def is_moved(self) -> bool:
        return bool(self.shift.details.get("is_moved"))

    @property
    def is_lost(self) -> bool:
        """Enough was asked, and too little of it came back as a grade."""
        return self.shift.value is None and self.item_count >= LEAST


def chosen(items: pl.DataFrame, graded: Iterable[str], size: int) -> list[str]:
    """Ids of the frozen items: the first by the hash of their content among those with a grade."""
    known = set(graded)
    ordered = items.sort("content_sha256", "item_id")["item_id"].to_list()
    return [item_id for item_id in ordered if item_id in known][:size]


def graded(verdicts: pl.DataFrame, metric: str) -> set[str]:
    """Items of which the judge graded at least one question of a metric."""
    return set(verdicts.filter((pl.col("metric") == metric) & pl.col("value").is_not_null())["item_id"])


def compare(
    metric: str, reference_id: str, reference: pl.DataFrame, asked: pl.DataFrame, floor: float | None
) -> Canary:
    """The drift of one metric's judge.

    Args:
        reference: verdicts of the reference evaluation. asked: today's of the frozen items, under their `canary: ` name.
        floor: share of items that differ between two judgings by an unchanged judge; null when not known.
    """
    today = asked.filter(pl.col("metric") == f"{PREFIX}{metric}")
    then = reference.filter(pl.col("metric") == metric).select(*QUESTION, "value")
    pairs = today.select(*QUESTION, pl.col("value").alias("now")).join(then, on=QUESTION).drop_nulls()
    by_item = pairs.group_by("item_id").agg(pl.col("value").mean(), pl.col("now").mean()).sort("item_id")
    moved = by_item.filter((pl.col("value") - pl.col("now")).abs() > 1e-12)["item_id"].to_list()
    shift = drift(by_item["value"].to_numpy(), by_item["now"].to_numpy(), flip_share=floor)
    return Canary(metric, reference_id, today["item_id"].n_unique(), shift, tuple(moved[:LISTED_ITEMS]))


def flip_floor(earlier: Iterable[Canary]) -> float | None:
    """Upper limit of the share of items that an unchanged judge grades otherwise, from nights on which it had not moved."""
    quiet = [one for one in earlier if one.shift.value is not None and not one.is_moved]
    total = sum(one.shift.n for one in quiet)
    if not total:
        return None
    return clopper_pearson(sum(one.shift.details["flips"] for one in quiet), total, sided="one").upper


def rules(case: Case) -> list[Rule]:
    """A judge that moved under its name blocks: tonight's grades are of two judges."""
    return [_rule(one) for one in case.canaries if one.metric in case.gated]


def _rule(one: Canary) -> Rule:
    numbers = one.shift.to_dict()
    if one.is_moved:
        shown = f"{len(one.moved_ids)} of {one.shift.n} frozen items differ, shift {signed(one.shift.value)}, p {p_value(one.shift.p)}"
        shown_ko = f"고정 항목 {one.shift.n}개 중 {len(one.moved_ids)}개가 다름, 변화 {signed(one.shift.value)}, p {p_value(one.shift.p)}"
        return Rule("canary", one.metric, Decision.BLOCKED, f"the judge changed under the same name: {shown}",
                    f"심판이 같은 이름으로 바뀜: {shown_ko}", one.moved_ids, numbers)  # fmt: skip
    if one.is_lost:
        return Rule("canary", one.metric, Decision.BLOCKED,
                    f"the judge grades {one.shift.n} of {one.item_count} frozen items, all of which it graded before",
                    f"전에 모두 채점한 고정 항목 {one.item_count}개 중 {one.shift.n}개만 채점함", numbers=numbers)  # fmt: skip
    if one.shift.value is None:
        return Rule("canary", one.metric, Decision.NOT_EVALUATED, f"{one.shift.n} frozen items; {LEAST} needed",
                    f"고정 항목 {one.shift.n}개, {LEAST}개 필요", numbers=numbers)  # fmt: skip
    return Rule("canary", one.metric, Decision.PASS, f"unmoved on {one.shift.n} frozen items, shift {signed(one.shift.value)}",
                f"고정 항목 {one.shift.n}개에서 그대로, 변화 {signed(one.shift.value)}", numbers=numbers)  # fmt: skip
