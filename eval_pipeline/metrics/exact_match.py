"""Exact match: 1 when equal after normalisation, else 0. Asks no judge."""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.declaration import Metric, Sample, Score, Verdict
from eval_pipeline.metrics.normalisation import tokens
from eval_pipeline.vocabulary import Language, ScoreStatus


def score(sample: Sample, _: Sequence[Verdict]) -> Score:
    value = float(tokens(sample.response or "") == tokens(sample.reference or ""))
    return Score(ScoreStatus.SCORED, value, value, value)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="exact_match",
        version=1,
        summary={
            Language.EN: "Is the response the reference, case and punctuation aside?",
            Language.KO: "대소문자와 문장부호를 빼면 응답이 기준 답변과 같은가?",
        },
        needs=("response", "reference"),
        questions=lambda _: [],
        score=score,
        label_scale=(0, 1),
    )
