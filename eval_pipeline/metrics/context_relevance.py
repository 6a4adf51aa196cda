"""Context relevance (NVIDIA): do the retrieved contexts, as one block, serve the question? Grades 0/1/2.

(grade_1 / 2 + grade_2 / 2) / 2; with one grade lost, the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.combination import dual
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.metrics.texts import joined
from eval_pipeline.vocabulary import Language

TEMPLATES = ("context_relevance.1", "context_relevance.2")
GRADES = (0, 1, 2)


def questions(sample: Sample) -> list[Question]:
    texts = {"user_input": sample.user_input or "", "retrieved_contexts": joined(sample.retrieved_contexts)}
    return [Question(template_id, texts, GRADES) for template_id in TEMPLATES]


def score(_: Sample, verdicts: Sequence[Verdict]) -> Score:
    return dual(verdicts, TEMPLATES)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="context_relevance",
        version=1,
        summary={
            Language.EN: "Do the retrieved contexts hold what the question needs?",
            Language.KO: "검색된 문맥에 질문에 필요한 내용이 있는가?",
        },
        needs=("user_input", "retrieved_contexts"),
        template_ids=TEMPLATES,
        questions=questions,
        score=score,
        label_scale=GRADES,
    )
