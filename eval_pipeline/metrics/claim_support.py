"""Claims of one text against another text: the questions and the shares. Shared by the claim-based metrics."""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline.metrics.combination import failures, part_values, share
from eval_pipeline.metrics.declaration import Question, Sample, Score, Verdict
from eval_pipeline.vocabulary import PartSource, ScoreStatus

TEMPLATES = ("claim_in_text.1", "claim_in_text.2")
GRADES = (0, 1)


def questions(sample: Sample, source: PartSource, premise: str) -> list[Question]:
    """Each claim of one text against the premise, by both templates."""
    return [
        Question(template_id, {"claim": claim, "premise": premise}, GRADES, part_source=source, part_index=index)
        for index, claim in enumerate(sample.claims.get(source, ()))
        for template_id in TEMPLATES
    ]


def supported(sample: Sample, source: PartSource, verdicts: Sequence[Verdict]) -> Score:
    """Share of one text's claims that are supported; without claims there is none."""
    claims = sample.claims.get(source, ())
    if not claims:
        return Score(ScoreStatus.NO_CLAIMS, reason="no_claims")
    mine = [one for one in verdicts if one.question.part_source == source]
    return share(part_values(mine, source, len(claims)), mine)


def f_beta(precision: float | None, recall: float | None, beta: float) -> float | None:
    """Weighted harmonic mean (van Rijsbergen 1979); 0 when both are 0, null when either is unknown."""
    if precision is None or recall is None:
        return None
    weight = beta * beta
    below = weight * precision + recall
    return (1 + weight) * precision * recall / below if below else 0.0


def both_ways(sample: Sample, verdicts: Sequence[Verdict], beta: float) -> tuple[Score, Score, Score]:
    """Precision over the response's claims, recall over the reference's, and their F-beta with its bounds."""
    precision, recall = (
        supported(sample, PartSource.RESPONSE, verdicts),
        supported(sample, PartSource.REFERENCE, verdicts),
    )
    parts = {"precision": precision.value, "recall": recall.value}
    if ScoreStatus.NO_CLAIMS in {precision.status, recall.status}:
        return precision, recall, Score(ScoreStatus.NO_CLAIMS, reason="no_claims", components=parts)
    value = f_beta(precision.value, recall.value, beta)
    lower, upper = (f_beta(getattr(precision, end), getattr(recall, end), beta) for end in ("lower", "upper"))
    status = (
        ScoreStatus.INVALID
        if value is None
        else ScoreStatus.SCORED_BOTH
        if lower == upper
        else ScoreStatus.SCORED_SINGLE
    )
    counts = (
        [precision.part_count or 0, recall.part_count or 0],
        [precision.valid_part_count or 0, recall.valid_part_count or 0],
    )
    whole = Score(
        status, value, lower, upper, part_count=sum(counts[0]), valid_part_count=sum(counts[1]),
        components=parts | {"f": value}, outcomes=failures(verdicts),
    )  # fmt: skip
    return precision, recall, whole
