"""Factual correctness: claims of response and reference against each other. Precision, recall or F-beta.

Recall counts the reference's claims that the response covers, so 3/4 and 2/3 give .75, .667 and .706.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from eval_pipeline.metrics import claim_support
from eval_pipeline.metrics.declaration import Metric, Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import Language, PartSource


def questions(sample: Sample) -> list[Question]:
    response = claim_support.questions(sample, PartSource.RESPONSE, sample.reference or "")
    return response + claim_support.questions(sample, PartSource.REFERENCE, sample.response or "")


def declare(mode: Literal["f1", "precision", "recall"] = "f1", beta: float = 1.0) -> Metric:
    """`mode` chooses the value, `beta` weighs recall in F."""
    if mode not in {"f1", "precision", "recall"}:
        raise TypeError(f"factual_correctness: mode {mode!r} is none of f1, precision, recall")

    def score(sample: Sample, verdicts: Sequence[Verdict]) -> Score:
        precision, recall, whole = claim_support.both_ways(sample, verdicts, beta)
        return {"precision": precision, "recall": recall, "f1": whole}[mode]

    return Metric(
        name="factual_correctness",
        version=1,
        summary={
            Language.EN: "Do response and reference make the same claims?",
            Language.KO: "응답과 기준 답변이 같은 주장을 하는가?",
        },
        needs=("user_input", "response", "reference"),
        template_ids=claim_support.TEMPLATES,
        decomposes=(PartSource.RESPONSE, PartSource.REFERENCE),
        questions=questions,
        score=score,
    )
