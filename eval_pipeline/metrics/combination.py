"""How verdicts combine into a score with its bounds. Shared by metrics; no metric is here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eval_pipeline.metrics.declaration import Score, Verdict
from eval_pipeline.vocabulary import Outcome, PartSource, ScoreStatus


def failures(verdicts: Sequence[Verdict]) -> tuple[Outcome, ...]:
    """Outcomes other than graded, in order, each once."""
    return tuple(dict.fromkeys(one.outcome for one in verdicts if one.outcome != Outcome.GRADED))


def dual(verdicts: Sequence[Verdict], template_ids: Sequence[str]) -> Score:
    """Mean of the two normalised grades; with one lost, the other; with both lost, invalid. Which one is lost is alike."""
    by_template = {one.question.template_id: one for one in verdicts}
    first, second = (by_template.get(template_id) for template_id in template_ids)
    values = [one.value if one else None for one in (first, second)]
    known = [value for value in values if value is not None]
    grades: dict[str, Any] = {"grade_1": first.grade if first else None, "grade_2": second.grade if second else None}
    lost = failures(verdicts)
    if not known:
        return Score(ScoreStatus.INVALID, lower=0.0, upper=1.0, outcomes=lost)
    total = sum(known)
    if len(known) == 1:
        return Score(ScoreStatus.SCORED_SINGLE, total, total / 2, (total + 1) / 2, outcomes=lost, **grades)
    return Score(
        ScoreStatus.SCORED_BOTH, total / 2, total / 2, total / 2, disagreement=abs(known[0] - known[1]), **grades
    )


def part_values(
    verdicts: Sequence[Verdict], source: PartSource, count: int, templates: int = 2
) -> list[tuple[float | None, float, float]]:
    """Per part of one source: mean of its templates' values or null, and its value with missing grades worst / best.

    `count` is the number of parts submitted and `templates` of questions on each, so what nobody answered is missing
    whether or not there is a verdict that says so.
    """
    found: list[list[float | None]] = [[] for _ in range(count)]
    for one in verdicts:
        question = one.question
        if question.part_source == source and 0 <= question.part_index < count:
            found[question.part_index].append(one.value)
    return [_part(values, templates) for values in found]


def _part(values: Sequence[float | None], templates: int) -> tuple[float | None, float, float]:
    known = [value for value in values if value is not None]
    if not known:
        return None, 0.0, 1.0
    asked = max(templates, len(values))
    return sum(known) / len(known), sum(known) / asked, (sum(known) + asked - len(known)) / asked


def share(parts: Sequence[tuple[float | None, float, float]], verdicts: Sequence[Verdict]) -> Score:
    """Mean over all parts submitted; one part without any valid grade makes it invalid."""
    values = [value for value, _, _ in parts]
    known = [value for value in values if value is not None]
    lower = sum(low for _, low, _ in parts) / len(parts)
    upper = sum(high for _, _, high in parts) / len(parts)
    counts: dict[str, Any] = {"part_count": len(parts), "valid_part_count": len(known), "outcomes": failures(verdicts)}
    if len(known) < len(parts):
        return Score(ScoreStatus.INVALID, None, lower, upper, **counts)
    status = ScoreStatus.SCORED_BOTH if lower == upper else ScoreStatus.SCORED_SINGLE
    return Score(status, sum(known) / len(known), lower, upper, **counts)
