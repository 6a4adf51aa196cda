"""The worst items with everything that was said about them: bounded in number and length, with counts of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any

import polars as pl

from eval_pipeline.report.view import EvaluationView

SHOWN_ITEMS, SHOWN_PARTS, SHOWN_CONTEXTS, SHOWN_CLAIMS = 60, 12, 8, 30
TEXT_LIMIT, REPLY_LIMIT = 6000, 1500
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as far as it is shown, and how many characters are left out."""

    text: str
    rest: int


def cut(text: object, limit: int = TEXT_LIMIT) -> Cut | None:
    """The beginning of a text; null for null."""
    if text is None:
        return None
    whole = str(text)
    return Cut(whole[:limit], max(0, len(whole) - limit))


@dataclass(frozen=True, slots=True)
class Part:
    """One thing judged, and each question's reply to it, side by side. `index` is null when the metric judged nothing else."""

    metric: str
    source: str
    index: int | None
    replies: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One item as the report shows it. `anchor` is made here: no text of the data becomes an id."""

    anchor: str
    item_id: str
    worst_of: tuple[str, ...]
    golden: Row
    response: Row
    contexts: tuple[Cut, ...]
    contexts_rest: int
    claims: tuple[Row, ...]
    claims_rest: int
    scores: tuple[Row, ...]
    parts: tuple[Part, ...]
    parts_rest: int


def worst_of(view: EvaluationView) -> dict[str, list[str]]:
    """Worst item ids by metric, over the whole set."""
    whole = view.summaries.filter(pl.col("stratum") == "all")
    return {metric: list(ids or ()) for metric, ids in whole.select("metric", "worst_item_ids").iter_rows()}


def chosen_ids(view: EvaluationView, limit: int = SHOWN_ITEMS) -> list[str]:
    """Ids to show: the worst of each metric in turn, so that no metric crowds out another."""
    turns = chain.from_iterable(zip_longest(*worst_of(view).values()))
    return list(islice(dict.fromkeys(name for name in turns if name is not None), limit))


def worst_items(view: EvaluationView, limit: int = SHOWN_ITEMS) -> list[Item]:
    """The worst items in full."""
    ids = chosen_ids(view, limit)
    of_metric = worst_of(view)
    golden, responses = _by_item(view.items, ids), _by_item(view.responses, ids)
    claims = _by_item(view.claims.sort("source", "claim_index", descending=[True, False]), ids)
    scores, verdicts = _by_item(view.scores.sort("metric"), ids), _by_item(_in_order(view.verdicts), ids)
    return [
        _item(
            f"item-{place}", name, tuple(metric for metric, names in of_metric.items() if name in names),
            next(iter(golden.get(name, ())), {}), next(iter(responses.get(name, ())), {}), claims.get(name, []),
            scores.get(name, []), list(_parts(verdicts.get(name, []))),
        )
        for place, name in enumerate(ids, start=1)
    ]  # fmt: skip


def _by_item(frame: pl.DataFrame, ids: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in frame.filter(pl.col("item_id").is_in(ids)).iter_rows(named=True):
        found.setdefault(row["item_id"], []).append(row)
    return found


def _in_order(verdicts: pl.DataFrame) -> pl.DataFrame:
    return verdicts.sort("metric", "part_source", "part_index", "template_id", "sample_index")


def _item(anchor: str, name: str, worst: tuple[str, ...], golden: Row, response: Row, claims: list[Row], scores: list[Row],
          parts: list[Part]) -> Item:  # fmt: skip
    contexts = response.get("retrieved_contexts") or []
    return Item(
        anchor, name, worst,
        {"stratum": None, "language": None} | golden | {key: cut(golden.get(key)) for key in ("user_input", "reference")},
        response | {key: cut(response.get(key)) for key in ("response", "error")},
        tuple(shown for text in contexts[:SHOWN_CONTEXTS] if (shown := cut(text, 2000))), max(0, len(contexts) - SHOWN_CONTEXTS),
        tuple(claim | {"claim": cut(claim["claim"], REPLY_LIMIT)} for claim in claims[:SHOWN_CLAIMS]), max(0, len(claims) - SHOWN_CLAIMS),
        tuple(scores), tuple(parts[:SHOWN_PARTS]), max(0, len(parts) - SHOWN_PARTS),
    )  # fmt: skip


def _parts(verdicts: list[Row]) -> Iterator[Part]:
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in verdicts:
        groups.setdefault((row["metric"], row["part_source"], row["part_index"]), []).append(row)
    per_metric = Counter(metric for metric, _, _ in groups)
    for (metric, source, index), rows in groups.items():
        yield Part(
            metric, source, index if per_metric[metric] > 1 else None, tuple(shown_reply(row) for row in rows[:6])
        )


def shown_reply(row: Row) -> Row:
    """A verdict with its texts cut for showing. The provider's words stand in where there is no reply."""
    said = row["reply"] if row["reply"] not in (None, "") else row["detail"]
    return row | {"reply": cut(said, REPLY_LIMIT), "reason": cut(row["reason"], REPLY_LIMIT)}
