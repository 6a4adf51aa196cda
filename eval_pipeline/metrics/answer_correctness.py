"""Answer correctness: weighted mean of claim F-beta and the similarity of response and reference.

.75 * F-beta + .25 * max(0, cosine(response, reference)), by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eval_pipeline.metrics import claim_support
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.metrics.factual_correctness import questions as claim_questions
from eval_pipeline.vocabulary import Expects, GradeMethod, Language, PartSource, ScoreStatus

SIMILARITY = "similarity"


def questions(sample: Sample) -> list[Question]:
    texts = {"left": sample.response or "", "right": sample.reference or ""}
    return [
        *claim_questions(sample),
        Question(SIMILARITY, texts, expects=Expects.SIMILARITY, method=GradeMethod.EMBEDDING),
    ]


def declare(weights: Sequence[float] = (0.75, 0.25), beta: float = 1.0) -> Metric:
    """`weights` of claim F-beta and similarity, scaled to sum 1."""
    total = sum(weights)
    if len(weights) != 2 or min(weights) < 0 or not total:
        raise TypeError("answer_correctness: weights are two numbers, not negative and not both 0")
    facts, likeness = (weight / total for weight in weights)

    def score(sample: Sample, verdicts: Sequence[Verdict]) -> Score:
        similar = next((one.value for one in verdicts if one.question.template_id == SIMILARITY), None)
        judged = [one for one in verdicts if one.question.template_id != SIMILARITY]
        whole = claim_support.both_ways(sample, judged, beta)[2]
        if whole.status == ScoreStatus.NO_CLAIMS:
            return whole
        known = None if similar is None else max(0.0, similar)
        if likeness == 0:
            known = 0.0
        components = {**whole.components, "similarity": similar}
        lower = facts * (whole.lower or 0.0) + likeness * (known if known is not None else 0.0)
        upper = facts * (whole.upper if whole.upper is not None else 1.0) + likeness * (
            known if known is not None else 1.0
        )
        if whole.value is None or known is None:
            return replace(
                whole, status=ScoreStatus.INVALID, value=None, lower=lower, upper=upper, components=components
            )
        return replace(
            whole, value=facts * whole.value + likeness * known, lower=lower, upper=upper, components=components
        )

    return Metric(
        name="answer_correctness",
        version=1,
        summary={
            Language.EN: "Does the response make the reference's claims, and read like it?",
            Language.KO: "응답이 기준 답변의 주장을 담고 그와 비슷한가?",
        },
        needs=("user_input", "response", "reference"),
        template_ids=claim_support.TEMPLATES,
        decomposes=(PartSource.RESPONSE, PartSource.REFERENCE),
        questions=questions,
        score=score,
        needs_embedding=True,
    )
