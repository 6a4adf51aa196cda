"""Pairwise preference against another system's stored response: 1, .5 or 0, asked in both orders; a flip is a tie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.metrics.combination import failures
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import Language, ScoreStatus

TEMPLATES = ("pairwise_preference",)
FLIP_LIMIT = 0.5
"""Flip rate from which a judge is called bound to the order."""


def mine_first(sample: Sample, seed: int, order: int) -> bool:
    """Whether this evaluation's response stands first in an order: drawn per item, so position cannot favour a system."""
    drawn = hashlib.sha256(f"{seed}\x00{sample.item_id}".encode()).digest()[0] % 2 == 0
    return drawn == (order == 0)


def _of_both(one: int, other: int) -> float:
    """The value of the two orders: what they agree on, else a tie."""
    return one / 2 if one == other else 0.5


@dataclass(frozen=True, slots=True)
class OrderSummary:
    """How much the order of presentation decided, over many pairs.

    Attributes:
        pair_count: pairs with a grade in both orders.
        flip_rate: share of them whose preference changed with the order; null without pairs.
        first_won_share: share of gradings that went to the response shown first; null without pairs.
        is_order_bound: most preferences follow the order, so the scores say little about the systems.
    """

    pair_count: int
    flip_rate: float | None
    first_won_share: float | None
    is_order_bound: bool


def order_summary(scores: Sequence[Score]) -> OrderSummary:
    """Flip rate over the scores of this metric; the ones without a grade in both orders do not count."""
    parts = [one.components for one in scores if one.value is not None and "flipped" in one.components]
    if not parts:
        return OrderSummary(0, None, None, False)
    flips, firsts = (sum(part[name] or 0.0 for part in parts) / len(parts) for name in ("flipped", "first_won_share"))
    return OrderSummary(len(parts), flips, firsts, flips >= FLIP_LIMIT)


def order_remark(name: str, summary: OrderSummary) -> tuple[str, str] | None:
    """What to say, in English and Korean, of a judge whose preferences follow the order; null of any other."""
    if not summary.is_order_bound:
        return None
    facts, first = f"{summary.flip_rate:.2f}, n {summary.pair_count}", f"{summary.first_won_share:.0%}"
    english = (
        f"order: {name}: flip rate {facts}; {first} of all gradings went to the response shown first. "
        "The judge follows the order, so ties here say nothing about the systems"
    )
    korean = (
        f"순서: {name}: 뒤집힘 비율 {facts}; 모든 채점의 {first}가 먼저 보인 응답에 돌아갔습니다. "
        "심판이 순서를 따르므로 이 무승부는 시스템에 대해 아무것도 말해 주지 않습니다"
    )
    return english, korean


def declare(against: str = "", seed: int = 0) -> Metric:
    """`against` is `system@release` with stored responses; `seed` draws which response is shown first."""
    del against  # read where responses are found

    def questions(sample: Sample) -> list[Question]:
        found = []
        for order in (0, 1):
            pair = (sample.response or "", sample.rival_response or "")
            first, second = pair if mine_first(sample, seed, order) else pair[::-1]
            texts = {"user_input": sample.user_input or "", "response_a": first, "response_b": second}
            found.append(Question(TEMPLATES[0], texts, (0, 1, 2), sample_index=order))
        return found

    def score(sample: Sample, verdicts: Sequence[Verdict]) -> Score:
        grades = {one.question.sample_index: one.grade for one in verdicts if one.grade is not None}
        liked = [grade if mine_first(sample, seed, order) else 2 - grade for order, grade in sorted(grades.items())]
        if len(liked) < 2:
            possible = [_of_both(one, other) for one in liked or (0, 2) for other in (0, 1, 2)]
            return Score(ScoreStatus.INVALID, lower=min(possible), upper=max(possible), outcomes=failures(verdicts))
        flipped = set(liked) == {0, 2}
        value = _of_both(*liked)
        first_won = sum(grade == 2 for grade in grades.values()) / 2
        parts = {"flipped": float(flipped), "first_won_share": first_won}
        return Score(ScoreStatus.SCORED, value, value, value, reason="flipped" if flipped else None, components=parts)

    return Metric(
        name="pairwise_preference",
        version=1,
        summary={
            Language.EN: "Is this response better than the other system's?",
            Language.KO: "다른 시스템의 응답보다 나은가?",
        },
        needs=("user_input", "response", "rival_response"),
        template_ids=TEMPLATES,
        questions=questions,
        score=score,
    )
