"""Joins items, responses and claims into samples: what a metric may look at. Pure; frames in, values out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.vocabulary import Language, Outcome, PartSource

CLAIMS_METRIC = "claims"
"""Name under which decomposition's own verdicts stand in the verdicts table."""


def samples(
    items: pl.DataFrame,
    responses: pl.DataFrame,
    claims: pl.DataFrame | None = None,
    verdicts: pl.DataFrame | None = None,
    rivals: pl.DataFrame | None = None,
) -> list[Sample]:
    """One sample per golden item, in the items' order.

    Args:
        items: `golden_items` rows of one dataset version.
        responses: `responses` rows of one evaluation; an item without a row was not answered.
        claims: `claims` rows, once decomposed.
        verdicts: decomposition's own verdicts, which tell "no claims" from "not decomposed".
        rivals: `responses` rows of the evaluation that a pairwise metric compares against.
    """
    answered = {row["item_id"]: row for row in responses.iter_rows(named=True)}
    rival = dict(rivals.select("item_id", "response").iter_rows()) if rivals is not None else {}
    outcomes = _outcomes(verdicts)
    texts = _claims(claims)
    return [
        _sample(row, answered.get(row["item_id"]), rival.get(row["item_id"]),
                texts.get(row["item_id"], {}), outcomes.get(row["item_id"], {}))
        for row in items.iter_rows(named=True)
    ]  # fmt: skip


def _sample(
    item: Mapping[str, object],
    answer: Mapping[str, object] | None,
    rival: str | None,
    texts: Mapping[PartSource, Sequence[str]],
    outcomes: Mapping[PartSource, Outcome],
) -> Sample:
    contexts = answer["retrieved_contexts"] if answer else None
    references = item["reference_contexts"]
    return Sample(
        item_id=str(item["item_id"]),
        user_input=item["user_input"],  # pyright: ignore[reportArgumentType]
        reference=item["reference"],  # pyright: ignore[reportArgumentType]
        response=answer["response"] if answer else None,  # pyright: ignore[reportArgumentType]
        retrieved_contexts=None if contexts is None else tuple(contexts),  # pyright: ignore[reportArgumentType]
        reference_contexts=None if references is None else tuple(references),  # pyright: ignore[reportArgumentType]
        language=Language(str(item["language"])),
        claims={source: tuple(texts.get(source, ())) for source, outcome in outcomes.items() if outcome == Outcome.GRADED},
        claim_outcomes=outcomes,
        rival_response=rival,
        is_failed=answer is None or answer["error"] is not None,
    )


def _outcomes(verdicts: pl.DataFrame | None) -> dict[str, dict[PartSource, Outcome]]:
    found: dict[str, dict[PartSource, Outcome]] = defaultdict(dict)
    if verdicts is not None:
        rows = verdicts.filter(pl.col("metric") == CLAIMS_METRIC).select("item_id", "part_source", "outcome")
        for item_id, source, outcome in rows.iter_rows():
            found[item_id][PartSource(source)] = Outcome(outcome)
    return found


def _claims(claims: pl.DataFrame | None) -> dict[str, dict[PartSource, list[str]]]:
    found: dict[str, dict[PartSource, list[str]]] = defaultdict(lambda: defaultdict(list))
    if claims is not None:
        rows = claims.sort("item_id", "source", "claim_index").select("item_id", "source", "claim")
        for item_id, source, claim in rows.iter_rows():
            found[item_id][PartSource(source)].append(claim)
    return found

