"""Rules about a golden set as a whole. Each looks at frames and names rows; reading files belongs to `intake`.

Items that share a `cluster_id` are declared to depend on each other and are no duplicates of each other.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Literal

import polars as pl

from eval_pipeline.quality import near_duplicates, personal_data
from eval_pipeline.quality.findings import Finding
from eval_pipeline.stats.drift import population_stability

LIMIT = 1_000
OF_THE_SET = {"stratum_drift", "stratum_minimum", "missing_field", "personal_data", "changed_references", "dead_items",
              "saturation", "label_drift"}  # fmt: skip
"""Rules whose rows are examples: each of them may be right, and the set is what is wrong."""
TEXTS = ("user_input", "reference", "reference_contexts")


def check_items(
    items: pl.DataFrame,
    *,
    previous: pl.DataFrame | None = None,
    minimum_sizes: Mapping[str, int] | None = None,
    stale_after_days: int | None = None,
    today: date | None = None,
    source_sha256: Mapping[str, str] | None = None,
    needs: Sequence[str] = (),
) -> list[Finding]:
    """All that one version shows by itself and beside the version before it.

    Args:
        items: `golden_items` rows of one version.
        previous: those of its parent.
        minimum_sizes: declared least number of items by stratum.
        stale_after_days: age from which an item is stale; null asks no such thing.
        today: the day the age is taken at; required with `stale_after_days`.
        source_sha256: hash of each source as it is now, by `source`; compared with `source_sha256` in an item's metadata.
        needs: item fields that the configured metrics need.
    """
    found = [*duplicates(items), *conflicting_references(items), *personal(items), *missing(items, needs),
             *small_strata(items, minimum_sizes or {})]  # fmt: skip
    if previous is not None:
        found += [*changed_references(previous, items), *stratum_drift(previous, items)]
    if stale_after_days is not None and today is not None:
        found += stale(items, today - timedelta(days=stale_after_days))
    return found + list(changed_sources(items, source_sha256 or {}))


def finding(
    rule: str, severity: Literal["error", "warning"], ids: Iterable[str], english: str, korean: str
) -> Iterator[Finding]:
    """One finding about these rows, or none without rows. `{n}` in a message is their number."""
    rows = list(ids)
    if rows:
        messages = english.format(n=len(rows)), korean.format(n=len(rows))
        yield Finding(rule, severity, *messages, tuple(rows[:LIMIT]), len(rows))


def duplicates(items: pl.DataFrame) -> Iterator[Finding]:
    """Questions that are the same, or nearly, in items that do not share a cluster: they count twice in every interval."""
    ids, clusters = items["item_id"].to_list(), items["cluster_id"].to_list()
    texts = [near_duplicates.squeezed(text) for text in items["user_input"]]
    same: dict[str, list[int]] = defaultdict(list)
    for position, text in enumerate(texts):
        same[text].append(position)
    for group in same.values():
        if _is_undeclared(group, clusters):
            yield from finding("duplicates", "error", (ids[i] for i in group), "{n} items ask the same: keep one, or give them one cluster_id",
                               "항목 {n}개가 같은 질문입니다. 하나만 남기거나 같은 cluster_id를 주세요")  # fmt: skip
    for group in near_duplicates.groups([near_duplicates.normalised(text) for text in items["user_input"]]):
        if len({texts[i] for i in group}) > 1 and _is_undeclared(group, clusters):
            yield from finding("near_duplicates", "warning", (ids[i] for i in group), "{n} items ask almost the same: give them one cluster_id",
                               "항목 {n}개가 거의 같은 질문입니다. 같은 cluster_id를 주세요")  # fmt: skip


def _is_undeclared(group: Sequence[int], clusters: Sequence[str | None]) -> bool:
    return len(group) > 1 and (len({clusters[i] for i in group}) > 1 or clusters[group[0]] is None)


def conflicting_references(items: pl.DataFrame) -> Iterator[Finding]:
    """The same question with different references."""
    answers: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for item_id, question, reference in items.select("item_id", "user_input", "reference").iter_rows():
        if reference is not None:
            answers[near_duplicates.squeezed(question)][near_duplicates.normalised(reference)].append(item_id)
    for by_reference in answers.values():
        if len(by_reference) > 1:
            yield from finding("conflicting_references", "error", (i for ids in by_reference.values() for i in ids),
                               "{n} items ask the same and have different references", "같은 질문인데 정답이 서로 다른 항목 {n}개")  # fmt: skip


def changed_references(previous: pl.DataFrame, items: pl.DataFrame) -> Iterator[Finding]:
    """Items whose question stayed and whose reference did not: their scores are not comparable across the two versions."""
    both = items.join(previous, on="item_id", suffix="_before")
    changed = both.filter(
        (pl.col("user_input") == pl.col("user_input_before"))
        & pl.col("reference").ne_missing(pl.col("reference_before"))
    )
    yield from finding("changed_references", "warning", changed["item_id"],
                       "{n} items kept their question and changed their reference: pairs with the version before are not comparable",
                       "질문은 그대로인데 정답이 바뀐 항목 {n}개: 이전 버전과 짝지어 비교할 수 없습니다")  # fmt: skip


def stratum_drift(previous: pl.DataFrame, items: pl.DataFrame) -> Iterator[Finding]:
    """Strata whose shares moved more than their sample sizes explain (PSI above its null limit)."""
    before, after = (dict(frame["stratum"].value_counts().iter_rows()) for frame in (previous, items))
    strata = sorted(before.keys() | after.keys())
    psi = population_stability([before.get(one, 0) for one in strata], [after.get(one, 0) for one in strata])
    if psi.value is None or not psi.details["is_shifted"]:
        return
    moved = max(strata, key=lambda one: abs(after.get(one, 0) / items.height - before.get(one, 0) / previous.height))
    shares = f"{before.get(moved, 0) / previous.height:.0%} -> {after.get(moved, 0) / items.height:.0%}"
    numbers = f"PSI {psi.value:.3f} > {psi.details['null_limit']:.3f}; {moved!r} {shares}".replace("{", "{{").replace(
        "}", "}}"
    )
    yield from finding("stratum_drift", "warning", items.filter(pl.col("stratum") == moved)["item_id"].to_list() or [moved],
                       f"the mix of strata moved: {numbers}", f"층 구성이 바뀌었습니다: {numbers}")  # fmt: skip


def small_strata(items: pl.DataFrame, minimum_sizes: Mapping[str, int]) -> Iterator[Finding]:
    """Strata below their declared size."""
    for stratum, minimum in minimum_sizes.items():
        ids = items.filter(pl.col("stratum") == stratum)["item_id"].to_list()
        if len(ids) < minimum:
            message = f"stratum {stratum!r} has {len(ids)} items, declared are at least {minimum}"
            korean = f"층 {stratum!r}의 항목은 {len(ids)}개로, 선언한 최소 {minimum}개보다 적습니다"
            yield Finding("stratum_minimum", "warning", message, korean, tuple(ids[:LIMIT]), len(ids))


def stale(items: pl.DataFrame, oldest: date) -> Iterator[Finding]:
    """Items not touched since a day. An item without a date is not judged."""
    rows = items.filter(pl.col("updated_at").str.slice(0, 10) < oldest.isoformat())
    yield from finding("stale", "warning", rows["item_id"], f"{{n}} items were last changed before {oldest}: check that they still hold",
                       f"{oldest} 이전에 마지막으로 바뀐 항목 {{n}}개: 아직 맞는지 확인하세요")  # fmt: skip


def changed_sources(items: pl.DataFrame, source_sha256: Mapping[str, str]) -> Iterator[Finding]:
    """Items whose source document is no longer the one they were written from."""
    ids = []
    for item_id, source, metadata in items.select("item_id", "source", "metadata").iter_rows():
        written_from = _metadata(metadata).get("source_sha256")
        if source in source_sha256 and written_from is not None and written_from != source_sha256[source]:
            ids.append(item_id)
    yield from finding("changed_source", "warning", ids, "{n} items were written from a document that has changed since",
                       "근거 문서가 그 뒤에 바뀐 항목 {n}개")  # fmt: skip


def _metadata(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def missing(items: pl.DataFrame, needs: Sequence[str]) -> Iterator[Finding]:
    """Items that lack a field some configured metric needs: that metric does not apply to them."""
    for name in needs:
        rows = items.filter(pl.col(name).is_null())
        yield from finding(
            "missing_field",
            "warning",
            rows["item_id"],
            f"{{n}} items have no {name}",
            f"{name}이(가) 없는 항목 {{n}}개",
        )


def personal(items: pl.DataFrame) -> Iterator[Finding]:
    """Items that seem to hold personal data, by kind. The data itself is not repeated."""
    ids: dict[str, list[str]] = defaultdict(list)
    for item_id, question, reference, passages in items.select("item_id", *TEXTS).iter_rows():
        for kind in personal_data.kinds("\n".join([question, reference or "", *(passages or ())])):
            ids[kind].append(item_id)
    for kind, rows in ids.items():
        korean = personal_data.KOREAN[kind]
        yield from finding(
            "personal_data",
            "warning",
            rows,
            f"{{n}} items seem to hold a {kind}",
            f"{korean}로 보이는 내용이 있는 항목 {{n}}개",
        )


def cross_split(splits: Mapping[str, pl.DataFrame]) -> list[Finding]:
    """Questions that are the same, or nearly, in two splits: what is learned from one is no evidence on the other."""
    rows = [(name, item_id, near_duplicates.normalised(text)) for name, frame in splits.items()
            for item_id, text in frame.select("item_id", "user_input").iter_rows()]  # fmt: skip
    shared = [
        group for group in near_duplicates.groups([row[2] for row in rows]) if len({rows[i][0] for i in group}) > 1
    ]
    return [
        found
        for group in shared
        for found in finding("cross_split_duplicates", "error", (f"{rows[i][0]} / {rows[i][1]}" for i in group),
                             "{n} items of several splits ask the same", "여러 분할에 같은 질문이 있습니다: 항목 {n}개")
    ]  # fmt: skip


def rotten_ids(findings: Iterable[Finding]) -> set[str]:
    """All items that some finding calls wrong; what a finding says about the set leaves its rows as they are."""
    return {item_id for found in findings if found.rule not in OF_THE_SET for item_id in found.item_ids}


def score_without(scores: pl.DataFrame, rotten: Iterable[str]) -> pl.DataFrame:
    """Per metric: mean and count over all items with a value, and over those that no finding names.

    Columns: metric, mean, scored_count, mean_without, scored_count_without. A mean over nothing is null.
    """
    kept = ~pl.col("item_id").is_in(list(rotten))
    value = pl.col("value")
    return scores.group_by("metric").agg(
        value.mean().alias("mean"), value.count().alias("scored_count"),
        value.filter(kept).mean().alias("mean_without"), value.filter(kept).count().alias("scored_count_without"),
    ).sort("metric")  # fmt: skip
