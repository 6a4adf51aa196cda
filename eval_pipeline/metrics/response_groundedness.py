"""Response groundedness (NVIDIA): is the response supported by the contexts? Grades 0/1/2.

(grade_1 / 2 + grade_2 / 2) / 2; with one grade lost, the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.combination import dual
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.metrics.texts import joined
from eval_pipeline.vocabulary import Language

TEMPLATES = ("response_groundedness.1", "response_groundedness.2")
GRADES = (0, 1, 2)


def questions(sample: Sample) -> list[Question]:
    texts = {"response": sample.response or "", "retrieved_contexts": joined(sample.retrieved_contexts)}
    return [Question(template_id, texts, GRADES) for template_id in TEMPLATES]


def score(_: Sample, verdicts: Sequence[Verdict]) -> Score:
    return dual(verdicts, TEMPLATES)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="response_groundedness",
        version=1,
        summary={
            Language.EN: "Is everything the response states in the retrieved contexts?",
            Language.KO: "응답의 모든 내용이 검색된 문맥에 있는가?",
        },
        needs=("response", "retrieved_contexts"),
        template_ids=TEMPLATES,
        questions=questions,
        score=score,
        label_scale=GRADES,
    )
