"""Context recall: the reference's claims that the retrieved contexts support / all of them."""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics import claim_support
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.metrics.texts import joined
from eval_pipeline.vocabulary import Language, PartSource


def questions(sample: Sample) -> list[Question]:
    return claim_support.questions(sample, PartSource.REFERENCE, joined(sample.retrieved_contexts))


def score(sample: Sample, verdicts: Sequence[Verdict]) -> Score:
    return claim_support.supported(sample, PartSource.REFERENCE, verdicts)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="context_recall",
        version=1,
        summary={
            Language.EN: "What share of the reference's claims do the retrieved contexts support?",
            Language.KO: "기준 답변의 주장 가운데 검색된 문맥이 뒷받침하는 비율은?",
        },
        needs=("user_input", "reference", "retrieved_contexts"),
        template_ids=claim_support.TEMPLATES,
        decomposes=(PartSource.REFERENCE,),
        questions=questions,
        score=score,
    )
