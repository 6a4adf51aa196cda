"""Texts to atomic claims: one question per text that some metric needs the claims of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import polars as pl

from eval_pipeline.asking import Asked, Asker
from eval_pipeline.metrics.declaration import Metric, Question, Sample
from eval_pipeline.tables import CLAIMS, VERDICTS
from eval_pipeline.verdict_rows import Origin, row
from eval_pipeline.vocabulary import Expects, Outcome, PartSource

TEMPLATE_ID = "claims"


def sources(metrics: Sequence[Metric]) -> tuple[PartSource, ...]:
    """The texts whose claims at least one metric needs."""
    return tuple(sorted({source for metric in metrics for source in metric.decomposes}))


def questions(sample: Sample, wanted: Sequence[PartSource]) -> list[Question]:
    """One question per text that is there and not blank; a failed response has none."""
    texts = {PartSource.RESPONSE: None if sample.is_failed else sample.response, PartSource.REFERENCE: sample.reference}
    return [
        Question(
            TEMPLATE_ID,
            {"text": text, "user_input": sample.user_input or ""},
            expects=Expects.CLAIMS,
            part_source=source,
        )
        for source in wanted
        if (text := texts.get(source)) and text.strip()
    ]


async def decompose(
    samples: Sequence[Sample], wanted: Sequence[PartSource], asker: Asker, origin: Origin
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Asks for the claims of every wanted text.

    Returns:
        The `claims` rows, and decomposition's own `verdicts` rows (which tell "no claims" from "no usable reply").
    """
    asked_of = [(sample, question) for sample in samples for question in questions(sample, wanted)]
    asked = await asyncio.gather(*(asker.ask(question, sample.language) for sample, question in asked_of))
    claims = [
        claim
        for (sample, _), answer in zip(asked_of, asked, strict=True)
        for claim in _claims(sample, answer, origin.evaluation_id)
    ]
    rows = [row(answer, sample.item_id, origin) for (sample, _), answer in zip(asked_of, asked, strict=True)]
    return CLAIMS.frame(claims), VERDICTS.frame(rows)


def _claims(sample: Sample, asked: Asked, evaluation_id: str) -> list[dict[str, object]]:
    if asked.verdict.outcome != Outcome.GRADED:
        return []
    source = asked.verdict.question.part_source.value
    return [
        {
            "evaluation_id": evaluation_id,
            "item_id": sample.item_id,
            "source": source,
            "claim_index": index,
            "claim": text,
        }
        for index, text in enumerate(asked.verdict.texts)
    ]
