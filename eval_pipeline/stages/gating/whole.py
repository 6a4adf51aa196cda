"""Rules about the evaluation as a whole: complete, unrotten, not judged by itself, answered."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from eval_pipeline.stages.gating.case import ALL, LISTED_ITEMS, Case, Rule
from eval_pipeline.stats.rates import clean_cases_needed, clopper_pearson
from eval_pipeline.vocabulary import Decision, ScoreStatus


def whole(case: Case) -> list[Rule]:
    """Each problem of the whole, and the rule about failed responses."""
    return [*_complete(case), *_comparable(case), _responses(case)]


def _complete(case: Case) -> Iterator[Rule]:
    row = case.evaluation
    if not row["item_count"] or not case.gated or case.scores.is_empty():
        yield Rule("complete", ALL, Decision.BLOCKED, "nothing to decide on: no items or no gated metric",
                   "판단할 것이 없음: 항목이나 게이트 대상 지표가 없습니다")  # fmt: skip
        return
    if row["is_partial"]:
        reason = row["partial_reason"]
        yield Rule("complete", ALL, Decision.BLOCKED, f"partial: {reason}", f"부분 결과: {reason}")
    for metric in case.gated:
        items = case.scores.filter(pl.col("metric") == metric)["item_id"]
        if items.n_unique() != row["item_count"] or items.len() != row["item_count"]:
            count, total = items.n_unique(), row["item_count"]
            yield Rule("complete", metric, Decision.BLOCKED, f"{count} of {total} items have a row",
                       f"{total}개 항목 중 {count}개만 행이 있습니다")  # fmt: skip
        summary = case.summary(metric)
        if summary is not None and summary["not_asked_count"] and not row["is_partial"]:
            left = summary["not_asked_count"]
            yield Rule("complete", metric, Decision.BLOCKED, f"{left} items were not asked", f"묻지 않은 항목 {left}개")


def _comparable(case: Case) -> Iterator[Rule]:
    if case.rot:
        text = "; ".join(case.rot[:3])
        yield Rule("dataset", ALL, Decision.BLOCKED, f"changed without a new tag: {text}", f"새 태그 없이 바뀜: {text}")
    if case.self_evaluation:
        text = "; ".join(case.self_evaluation[:3])
        yield Rule("self-evaluation", ALL, Decision.BLOCKED, f"a model grades itself: {text}",
                   f"모델이 자기 자신을 채점: {text}")  # fmt: skip


def _responses(case: Case) -> Rule:
    """Over the cap outright blocks: what is left is no evaluation of this system.

    Under it, the upper limit must be within the cap too where the set is large enough to show that; else it fails.
    """
    failed = case.scores.filter(pl.col("status") == ScoreStatus.NO_RESPONSE.value)["item_id"].unique().sort()
    total, cap = int(case.evaluation["item_count"]), case.gate.max_failed_response_share
    if not total:
        return Rule("responses", ALL, Decision.NOT_EVALUATED, "no items", "항목 없음")
    share = clopper_pearson(min(failed.len(), total), total, sided="one")
    value, upper = share.value or 0.0, share.upper if share.upper is not None else 1.0
    verdict, over = Decision.PASS, ""
    if value > cap:
        verdict, over = Decision.BLOCKED, f" > {cap:.0%}"
    elif failed.len() and upper > cap and _can_show(total, cap):
        verdict, over = Decision.FAIL, f" > {cap:.0%}"
    return Rule(
        "responses", ALL, verdict,
        f"{failed.len()} failed of {total}: {value:.1%}, upper {upper:.1%}{over}",
        f"{total}건 중 {failed.len()}건 실패: {value:.1%}, 상한 {upper:.1%}{over}",
        tuple(failed.head(LISTED_ITEMS).to_list()),
        {"failed_count": failed.len(), "item_count": total, "cap": cap, "upper": upper},
    )  # fmt: skip


def _can_show(total: int, cap: float) -> bool:
    return 0 < cap < 1 and total >= clean_cases_needed(cap)
