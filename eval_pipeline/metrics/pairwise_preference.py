"""Pairwise preference against another system's stored response: 1, .5 or 0, asked in both orders; a flip is a tie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from eval_pipeline.metrics.combination import failures
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import Language, ScoreStatus

TEMPLATES = ("pairwise_preference",)


def mine_first(sample: Sample, seed: int, order: int) -> bool:
    """Whether this evaluation's response stands first in an order: drawn per item, so position cannot favour a system."""
    drawn = hashlib.sha256(f"{seed}\x00{sample.item_id}".encode()).digest()[0] % 2 == 0
    return drawn == (order == 0)


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
        by_order = {one.question.sample_index: one for one in verdicts if one.grade is not None}
        if len(by_order) < 2:
            return Score(ScoreStatus.INVALID, lower=0.0, upper=1.0, outcomes=failures(verdicts))
        liked = [
            (one.grade if mine_first(sample, seed, order) else 2 - (one.grade or 0))
            for order, one in sorted(by_order.items())
        ]
        flipped = {0, 2} == set(liked)
        value = 0.5 if liked[0] != liked[1] else (liked[0] or 0) / 2
        first_won = sum((one.grade or 0) == 2 for one in by_order.values()) / 2
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
