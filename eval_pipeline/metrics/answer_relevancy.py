"""Answer relevancy: mean similarity of the question and questions generated from the answer. An evasive answer is 0.

Sum over i of max(0, cosine(question, generated_i)) / n.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.combination import failures
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import Expects, GradeMethod, Language, ScoreStatus

TEMPLATES = ("answer_relevancy",)


def follow_up(sample: Sample, verdicts: Sequence[Verdict]) -> list[Question]:
    """Each generated question against the real one."""
    return [
        Question("similarity", {"left": sample.user_input or "", "right": one.texts[0]}, expects=Expects.SIMILARITY,
                 sample_index=one.question.sample_index, method=GradeMethod.EMBEDDING)
        for one in verdicts
        if one.texts
    ]  # fmt: skip


def declare(n: int = 3) -> Metric:
    """`n` questions are generated, each an independent draw."""
    if n < 1:
        raise TypeError(f"answer_relevancy: n is at least 1, not {n}")

    def questions(sample: Sample) -> list[Question]:
        texts = {"response": sample.response or ""}
        return [
            Question(TEMPLATES[0], texts, expects=Expects.GENERATED_QUESTION, sample_index=index) for index in range(n)
        ]

    def score(_: Sample, verdicts: Sequence[Verdict]) -> Score:
        generated = [one for one in verdicts if one.question.expects == Expects.GENERATED_QUESTION]
        usable = [one for one in generated if one.is_noncommittal is not None]
        similar = [
            max(0.0, one.value)
            for one in verdicts
            if one.question.expects == Expects.SIMILARITY and one.value is not None
        ]
        similar += [0.0 for one in usable if not one.texts]  # an evasive text that fits no question at all
        if not usable:
            return Score(ScoreStatus.INVALID, lower=0.0, upper=1.0, outcomes=failures(verdicts))
        evasive = sum(bool(one.is_noncommittal) for one in usable) / len(usable)
        parts = {"noncommittal_share": evasive, "generated_count": float(len(similar))}
        if evasive == 1.0:
            return Score(ScoreStatus.SCORED, 0.0, 0.0, 0.0, reason="noncommittal", components=parts)
        total, missing = sum(similar), n - len(similar)
        lower, upper = total / n, (total + missing) / n
        if not similar:
            return Score(ScoreStatus.INVALID, None, lower, upper, outcomes=failures(verdicts), components=parts)
        status = ScoreStatus.SCORED if not missing else ScoreStatus.SCORED_SINGLE
        return Score(status, total / len(similar), lower, upper, outcomes=failures(verdicts), components=parts)

    return Metric(
        name="answer_relevancy",
        version=1,
        summary={
            Language.EN: "Does the response answer the question that was asked?",
            Language.KO: "응답이 물어본 질문에 답하는가?",
        },
        needs=("user_input", "response"),
        template_ids=TEMPLATES,
        questions=questions,
        follow_up=follow_up,
        score=score,
        needs_embedding=True,
    )
