"""Context precision: mean precision@k over the ranked contexts. It measures ranking, not the share of useful contexts.

Sum over ranks k of precision@k * useful_k / number of useful contexts: [1, 0, 1] is 5/6, nothing useful 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from eval_pipeline.metrics.combination import failures
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import Language, PartSource, ScoreStatus

TEMPLATES = ("context_precision.1",)


def average_precision(useful: Sequence[int]) -> float:
    """Mean of precision@k over the useful ranks, exactly: [1,1,0,1] is 11/12. Nothing useful is 0."""
    hits, total = 0, Fraction(0)
    for rank, is_useful in enumerate(useful, 1):
        hits += is_useful
        total += Fraction(hits, rank) if is_useful else 0
    return float(total / hits) if hits else 0.0


def score(sample: Sample, verdicts: Sequence[Verdict]) -> Score:
    count = len(sample.retrieved_contexts or ())
    grades: list[int | None] = [None] * count
    for one in verdicts:
        if 0 <= one.question.part_index < count:
            grades[one.question.part_index] = one.grade
    known = [grade for grade in grades if grade is not None]
    # A missing grade at the worst is 0. At the best it is 1, unless a 1 further down lowers the mean: both are tried.
    lower = _extreme(grades, min)
    upper = _extreme(grades, max)
    if len(known) < count:
        return Score(
            ScoreStatus.INVALID, None, lower, upper, outcomes=failures(verdicts),
            part_count=count, valid_part_count=len(known),
        )  # fmt: skip
    value = average_precision(known)
    useful = sum(known) / count if count else None
    return Score(
        ScoreStatus.SCORED, value, value, value, components={"useful_share": useful},
        part_count=count, valid_part_count=count,
    )  # fmt: skip


def _extreme(grades: Sequence[int | None], pick) -> float:  # noqa: ANN001
    """Worst or best value over the missing grades: every split of them into useless and useful, from the top or the end."""
    missing = [index for index, grade in enumerate(grades) if grade is None]
    chosen = [part for cut in range(len(missing) + 1) for part in (missing[:cut], missing[len(missing) - cut :])]
    return pick(
        average_precision([int(index in useful) if grade is None else grade for index, grade in enumerate(grades)])
        for useful in chosen
    )


def declare(against: Literal["reference", "response"] = "reference") -> Metric:
    """`against` says which answer a context must be useful for."""
    if against not in {"reference", "response"}:
        raise TypeError(f"context_precision: against {against!r} is neither reference nor response")

    def questions(sample: Sample) -> list[Question]:
        answer = getattr(sample, against) or ""
        return [
            Question(TEMPLATES[0], {"user_input": sample.user_input or "", "answer": answer, "context": context}, (0, 1),
                     part_source=PartSource.CONTEXT, part_index=index)
            for index, context in enumerate(sample.retrieved_contexts or ())
        ]  # fmt: skip

    return Metric(
        name="context_precision",
        version=1,
        summary={
            Language.EN: "Do the useful contexts stand first?",
            Language.KO: "쓸모 있는 문맥이 앞에 오는가?",
        },
        needs=("user_input", against, "retrieved_contexts"),
        template_ids=TEMPLATES,
        questions=questions,
        score=score,
    )
