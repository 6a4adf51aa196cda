"""Faithfulness: supported claims / claims submitted. Each claim is asked twice, by two templates, grades 0/1."""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.claim_support import supported
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.metrics.texts import joined
from eval_pipeline.vocabulary import Language, PartSource

TEMPLATES = ("faithfulness.1", "faithfulness.2")
GRADES = (0, 1)


def questions(sample: Sample) -> list[Question]:
    contexts = joined(sample.retrieved_contexts)
    return [
        Question(template_id, {"claim": claim, "retrieved_contexts": contexts, "user_input": sample.user_input or ""},
                 GRADES, part_index=index)
        for index, claim in enumerate(sample.claims.get(PartSource.RESPONSE, ()))
        for template_id in TEMPLATES
    ]  # fmt: skip


def score(sample: Sample, verdicts: Sequence[Verdict]) -> Score:
    return supported(sample, PartSource.RESPONSE, verdicts)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="faithfulness",
        version=1,
        summary={
            Language.EN: "What share of the response's claims do the retrieved contexts support?",
            Language.KO: "응답의 주장 가운데 검색된 문맥이 뒷받침하는 비율은?",
        },
        needs=("user_input", "response", "retrieved_contexts"),
        template_ids=TEMPLATES,
        decomposes=(PartSource.RESPONSE,),
        questions=questions,
        score=score,
    )
