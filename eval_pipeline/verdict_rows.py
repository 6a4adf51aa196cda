"""Turns an asked question into a row of the `verdicts` table, and a row back into a verdict. Nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval_pipeline.asking import Asked
from eval_pipeline.metrics.declaration import Question, Verdict
from eval_pipeline.vocabulary import Expects, GradeMethod, Outcome, PartSource


@dataclass(frozen=True, slots=True)
class Origin:
    """What all verdicts of one metric in one evaluation share."""

    evaluation_id: str
    metric: str
    judge: str
    judge_model: str
    judge_key: str | None


def row(asked: Asked, item_id: str, origin: Origin) -> dict[str, object]:
    """One row of `verdicts`. Tokens are summed over all attempts, cost over the calls made now."""
    verdict, question, replies = asked.verdict, asked.verdict.question, asked.replies
    last = replies[-1] if replies else None
    called = [reply for reply in replies if not reply.is_cached]
    return {
        "evaluation_id": origin.evaluation_id,
        "metric": origin.metric,
        "item_id": item_id,
        "part_source": question.part_source.value,
        "part_index": question.part_index,
        "template_id": question.template_id,
        "sample_index": question.sample_index,
        "language": asked.language.value,
        "expects": question.expects.value,
        "outcome": verdict.outcome.value,
        "grade": verdict.grade,
        "value": verdict.value,
        "method": verdict.method.value,
        "reason": verdict.reason,
        "texts": list(verdict.texts) or None,
        "is_noncommittal": verdict.is_noncommittal,
        "reply": last.text if last else None,
        "detail": last.detail if last else None,
        "attempt_count": len(replies),
        "attempt_outcomes": [outcome.value for outcome in asked.outcomes],
        "transport_retry_count": sum(reply.transport_retry_count for reply in replies),
        "judge": origin.judge,
        "judge_model": origin.judge_model,
        "returned_model": last.model if last else None,
        "system_fingerprint": last.system_fingerprint if last else None,
        "prompt_sha256": asked.prompt_sha256,
        "judge_key": origin.judge_key,
        "ledger_key": last.ledger_key if last else None,
        "is_cached": bool(replies) and not called,
        "call_count": sum(1 + reply.transport_retry_count for reply in called),
        "input_tokens": total(reply.input_tokens for reply in replies),
        "cached_input_tokens": total(reply.cached_input_tokens for reply in replies),
        "output_tokens": total(reply.output_tokens for reply in replies),
        "cost_usd": total(reply.cost_usd for reply in called) if called else 0.0,
        "latency_seconds": last.latency_seconds if last else None,
    }


def total(numbers: Iterable[float | None]) -> float | None:
    """Sum, or null as soon as one part is unknown: an unknown cost is not free."""
    whole: float = 0
    for number in (known := list(numbers)):
        if number is None:
            return None
        whole += number
    return whole if known else None


def verdict(stored: Mapping[str, object]) -> Verdict:
    """The verdict behind a stored row. Its question carries identity only, no texts: those are in other tables."""
    question = Question(
        template_id=str(stored["template_id"]),
        inputs={},
        expects=Expects(str(stored["expects"])),
        part_source=PartSource(str(stored["part_source"])),
        part_index=int(stored["part_index"]),  # pyright: ignore[reportArgumentType]
        sample_index=int(stored["sample_index"]),  # pyright: ignore[reportArgumentType]
    )
    return Verdict(
        question=question,
        outcome=Outcome(str(stored["outcome"])),
        grade=stored["grade"],  # pyright: ignore[reportArgumentType]
        value=stored["value"],  # pyright: ignore[reportArgumentType]
        texts=tuple(stored["texts"] or ()),  # pyright: ignore[reportArgumentType]
        is_noncommittal=stored["is_noncommittal"],  # pyright: ignore[reportArgumentType]
        method=GradeMethod(str(stored["method"])),
        reason=stored["reason"],  # pyright: ignore[reportArgumentType]
    )
