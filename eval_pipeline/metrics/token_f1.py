"""Token F1: harmonic mean of precision and recall over shared words (Rajpurkar et al. 2016). Asks no judge.

2 * precision * recall / (precision + recall).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eval_pipeline.metrics.declaration import Metric, Sample, Score, Verdict
from eval_pipeline.metrics.normalisation import tokens
from eval_pipeline.vocabulary import Language, ScoreStatus


def score(sample: Sample, _: Sequence[Verdict]) -> Score:
    response, reference = tokens(sample.response or ""), tokens(sample.reference or "")
    shared = sum((Counter(response) & Counter(reference)).values())
    if not response or not reference:
        value = float(response == reference)
        return Score(ScoreStatus.SCORED, value, value, value)
    value = 2 * shared / (len(response) + len(reference))
    parts = {"precision": shared / len(response), "recall": shared / len(reference)}
    return Score(ScoreStatus.SCORED, value, value, value, components=parts)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="token_f1",
        version=1,
        summary={
            Language.EN: "How many words do response and reference share?",
            Language.KO: "응답과 기준 답변이 공유하는 단어는 얼마나 되는가?",
        },
        needs=("response", "reference"),
        questions=lambda _: [],
        score=score,
    )
