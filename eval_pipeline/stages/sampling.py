"""Joins items, responses and claims into samples: what a metric may look at. Pure; frames in, values out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.vocabulary import Language, Outcome, PartSource

CLAIMS_METRIC = "claims"
"""Name under which decomposition's own verdicts stand in the verdicts table."""
LABELS = "labels: "
"""What precedes a metric's name where its verdicts are about labelled texts: paid for, and no score rests on them."""


def samples(items: pl.DataFrame, responses: pl.DataFrame, rivals: pl.DataFrame | None = None) -> list[Sample]:
    """One sample per golden item, in the items' order, without claims.

    Args:
        items: `golden_items` rows of one dataset version.
        responses: `responses` rows of one evaluation; an item without a row was not answered.
        rivals: `responses` rows of the evaluation that a pairwise metric compares against.
    """
    answered = {row["item_id"]: row for row in responses.iter_rows(named=True)}
    rival = dict(rivals.select("item_id", "response").iter_rows()) if rivals is not None else {}
    return [
        _sample(row, answered.get(row["item_id"]), rival.get(row["item_id"])) for row in items.iter_rows(named=True)
    ]


def with_claims(whole: Sequence[Sample], claims: pl.DataFrame, verdicts: pl.DataFrame) -> list[Sample]:
    """The samples with their claims.

    Args:
        claims: `claims` rows.
        verdicts: `verdicts` rows, of which decomposition's own tell "no claims" from "not decomposed".
    """
    texts, outcomes = _claims(claims), _outcomes(verdicts)
    return [
        replace(
            sample,
            claims={
                source: tuple(texts.get(sample.item_id, {}).get(source, ()))
                for source, outcome in outcomes[sample.item_id].items()
                if outcome == Outcome.GRADED
            },
            claim_outcomes=outcomes[sample.item_id],
        )
        if sample.item_id in outcomes
        else sample
        for sample in whole
    ]


def _sample(item: Mapping[str, Any], answer: Mapping[str, Any] | None, rival: str | None) -> Sample:
    contexts = answer["retrieved_contexts"] if answer else None
    references = item["reference_contexts"]
    return Sample(
        item_id=item["item_id"],
        user_input=item["user_input"],
        reference=item["reference"],
        response=answer["response"] if answer else None,
        retrieved_contexts=None if contexts is None else tuple(contexts),
        reference_contexts=None if references is None else tuple(references),
        language=Language(item["language"]),
        rival_response=rival,
        is_failed=answer is None or answer["error"] is not None,
    )


def _outcomes(verdicts: pl.DataFrame) -> dict[str, dict[PartSource, Outcome]]:
    found: dict[str, dict[PartSource, Outcome]] = defaultdict(dict)
    rows = verdicts.filter(pl.col("metric") == CLAIMS_METRIC).select("item_id", "part_source", "outcome")
    for item_id, source, outcome in rows.iter_rows():
        found[item_id][PartSource(source)] = Outcome(outcome)
    return found


def _claims(claims: pl.DataFrame) -> dict[str, dict[PartSource, list[str]]]:
    found: dict[str, dict[PartSource, list[str]]] = defaultdict(lambda: defaultdict(list))
    rows = claims.sort("item_id", "source", "claim_index").select("item_id", "source", "claim")
    for item_id, source, claim in rows.iter_rows():
        found[item_id][PartSource(source)].append(claim)
    return found
