"""Answer accuracy (NVIDIA): response against reference, then with the roles swapped. Grades 0/2/4.

(grade_1 / 4 + grade_2 / 4) / 2; with one grade lost, the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.combination import dual
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import Language

TEMPLATES = ("answer_accuracy.1", "answer_accuracy.2")
GRADES = (0, 2, 4)


def questions(sample: Sample) -> list[Question]:
    texts = {
        "user_input": sample.user_input or "",
        "response": sample.response or "",
        "reference": sample.reference or "",
    }
    return [Question(template_id, texts, GRADES) for template_id in TEMPLATES]


def score(_: Sample, verdicts: Sequence[Verdict]) -> Score:
    return dual(verdicts, TEMPLATES)


def declare() -> Metric:
    """No options."""
    return Metric(
        name="answer_accuracy",
        version=1,
        summary={
            Language.EN: "Does the response state the same facts as the reference?",
            Language.KO: "응답이 기준 답변과 같은 사실을 말하는가?",
        },
        needs=("user_input", "response", "reference"),
        template_ids=TEMPLATES,
        questions=questions,
        score=score,
        label_scale=GRADES,
    )
