"""Rubric score: one call, an integer on the rubric's own scale, normalised to [0, 1]; the feedback is kept.

(grade - worst) / (best - worst).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eval_pipeline.metrics.combination import failures
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.metrics.texts import joined
from eval_pipeline.vocabulary import Language, ScoreStatus

TEMPLATES = ("rubric_score",)
DEFAULT = {
    1: "wrong or off the point",
    2: "mostly wrong or incomplete",
    3: "right in part",
    4: "right, with small gaps",
    5: "right, complete and to the point",
}


def single(verdicts: Sequence[Verdict]) -> Score:
    """The value of the one question."""
    one = next(iter(verdicts), None)
    if one is None or one.value is None:
        return Score(ScoreStatus.INVALID, lower=0.0, upper=1.0, outcomes=failures(verdicts))
    return Score(
        ScoreStatus.SCORED, one.value, one.value, one.value, reason=None, components={"grade": float(one.grade or 0)}
    )


def declare(
    rubric: Mapping[int, str] | None = None,
    needs: Sequence[str] = ("user_input", "response"),
    name: str = "rubric_score",
) -> Metric:
    """`rubric` says what each grade of the scale means; `needs` names the fields the judge must see."""
    scale = {int(grade): str(text) for grade, text in (rubric or DEFAULT).items()}
    grades = tuple(sorted(scale))
    if len(grades) < 2:
        raise TypeError(f"{name}: a rubric has at least two grades")
    settings = {
        "rubric": "\n".join(f"{grade}: {scale[grade]}" for grade in grades),
        "grades": ", ".join(map(str, grades)),
    }

    def questions(sample: Sample) -> list[Question]:
        texts = {"user_input": sample.user_input or "", "response": sample.response or "", "reference": sample.reference or "",
                 "retrieved_contexts": joined(sample.retrieved_contexts)}  # fmt: skip
        return [Question(TEMPLATES[0], texts, grades, settings=settings)]

    return Metric(
        name=name,
        version=1,
        summary={
            Language.EN: "Which grade of the rubric does the response earn?",
            Language.KO: "응답은 채점 기준의 몇 등급인가?",
        },
        needs=tuple(needs),
        template_ids=TEMPLATES,
        questions=questions,
        score=lambda _, verdicts: single(verdicts),
        label_scale=grades,
        settings=settings,
    )
