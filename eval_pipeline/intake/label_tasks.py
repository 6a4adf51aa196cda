"""What people are asked to label: which texts, by which design, for whom. Sheets and pages only show these tasks."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from eval_pipeline.metrics.declaration import Metric
from eval_pipeline.metrics.texts import content_sha256
from eval_pipeline.vocabulary import SCORED_STATUSES, Language

MOST_BINS = 5
RESERVE_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class LabelTask:
    """One text to label.

    Attributes:
        metric: instance name.
        content_sha256: hash of `texts`, which are exactly the fields the metric needs.
        inclusion_probability: with which the design drew it; null when it was not drawn (adjudication).
        is_reserve: drawn in proportion to the bins, so that the reserve alone is a plain random sample.
    """

    item_id: str
    metric: str
    content_sha256: str
    texts: Mapping[str, Any]
    stratum: str | None = None
    cluster_id: str | None = None
    inclusion_probability: float | None = None
    is_reserve: bool = False


def candidates(
    name: str, metric: Metric, items: pl.DataFrame, responses: pl.DataFrame, scores: pl.DataFrame
) -> list[tuple[LabelTask, float]]:
    """Tasks that one evaluation offers for a metric, each with the judge's value; what the judge could not score is none.

    Args:
        name: instance name of the metric.
        items: `golden_items` rows. responses: `responses` rows. scores: `scores` rows, all of one evaluation.

    Raises:
        ValueError: the texts are not those that were scored.
    """
    of_metric = scores.filter(
        (pl.col("metric") == name) & pl.col("status").is_in([one.value for one in SCORED_STATUSES])
    )
    fields = items.join(responses, on="item_id", how="inner")
    known = {row["item_id"]: row for row in fields.iter_rows(named=True)}
    found: dict[str, tuple[LabelTask, float]] = {}
    for row in of_metric.drop_nulls("value").sort("item_id").iter_rows(named=True):
        texts = {field: known[row["item_id"]][field] for field in metric.needs}
        sha = content_sha256(texts)
        if sha != row["content_sha256"]:
            raise ValueError(f"the texts of {row['item_id']} are not those that {name} scored")
        found.setdefault(
            sha, (LabelTask(row["item_id"], name, sha, texts, row["stratum"], row["cluster_id"]), row["value"])
        )
    return list(found.values())


def draw(
    offered: Sequence[tuple[LabelTask, float]], n: int, seed: int, reserve_share: float = RESERVE_SHARE
) -> list[LabelTask]:
    """`n` tasks, drawn at random within bins of the judge's score, each with its exact inclusion probability.

    A share of `n` goes to the bins in proportion to their size (the reserve), the rest in equal parts, so that rare
    scores are labelled too. Within a bin every task is as likely as any other: probability = drawn / offered.
    """
    bins = _bins([value for _, value in offered])
    sizes = [bins.count(one) for one in range(max(bins, default=-1) + 1)]
    total = min(n, len(offered))
    reserve = _proportional(sizes, math.ceil(total * reserve_share))
    takes = _level(sizes, reserve, total)
    generator = np.random.default_rng(seed)
    drawn: list[LabelTask] = []
    for one, (size, take) in enumerate(zip(sizes, takes, strict=True)):
        members = [task for (task, _), own in zip(offered, bins, strict=True) if own == one]
        for order, index in enumerate(generator.permutation(size)[:take].tolist()):
            drawn.append(replace(members[index], inclusion_probability=take / size, is_reserve=order < reserve[one]))
    return [drawn[index] for index in generator.permutation(len(drawn)).tolist()]


def _bins(values: Sequence[float]) -> list[int]:
    """The bin of each value: one bin a level when there are few levels, else fifths of the sorted values."""
    levels = sorted(set(values))
    if len(levels) <= MOST_BINS:
        return [levels.index(value) for value in values]
    edges = np.unique(np.quantile(values, [0.2, 0.4, 0.6, 0.8]))
    raw = np.searchsorted(edges, values, side="right").tolist()
    occupied = sorted(set(raw))
    return [occupied.index(one) for one in raw]


def _proportional(sizes: Sequence[int], total: int) -> list[int]:
    """Largest remainders."""
    if not sum(sizes):
        return [0] * len(sizes)
    exact = [size * total / sum(sizes) for size in sizes]
    found = [math.floor(one) for one in exact]
    for one in sorted(range(len(sizes)), key=lambda i: (found[i] - exact[i], i))[: total - sum(found)]:
        found[one] += 1
    return found


def _level(sizes: Sequence[int], start: Sequence[int], total: int) -> list[int]:
    """Raises the smallest takes first until `total` is reached or all is taken."""
    takes = list(start)
    while sum(takes) < total:
        open_bins = [one for one, size in enumerate(sizes) if takes[one] < size]
        takes[min(open_bins, key=lambda i: (takes[i], i))] += 1
    return takes


def assign(tasks: Sequence[LabelTask], annotators: Sequence[str], overlap: int) -> dict[str, list[LabelTask]]:
    """Tasks by annotator: the first `overlap` go to everyone, the others to one person each, in turn.

    The order of `tasks` is random already, so the shared ones are a random part.
    """
    shared, own = list(tasks[:overlap]), tasks[overlap:]
    if len(annotators) == 1:
        return {annotators[0]: list(tasks)}
    return {name: shared + list(own[number :: len(annotators)]) for number, name in enumerate(annotators)}


def arithmetic(task_count: int, annotator_count: int, overlap: int, language: Language = Language.EN) -> str:
    """The number of labels that a plan asks for, as a sum to print."""
    shared = min(overlap, task_count) if annotator_count > 1 else 0
    more = annotator_count - 1
    total = task_count + shared * more
    if language == Language.KO:
        return f"항목 {task_count}개 + 공통 {shared}개 x {more}명 = 라벨 {total}개" if shared else f"라벨 {total}개"
    return f"{task_count} items + {shared} shared x {more} more = {total} labels" if shared else f"{total} labels"


def disagreements(labels: pl.DataFrame, metric: str, adjudicated: str = "adjudicated") -> list[LabelTask]:
    """Texts that people labelled differently and nobody has settled yet, as tasks for the adjudicator.

    Args:
        labels: `human_labels` rows.
        adjudicated: name under which the settling label is given.
    """
    found = []
    for (sha,), part in labels.filter(pl.col("metric") == metric).group_by("content_sha256", maintain_order=True):
        if adjudicated not in part["annotator"].to_list() and part["value"].n_unique() > 1:
            first = part.row(0, named=True)
            found.append(LabelTask(first["item_id"], metric, str(sha), json.loads(first["texts"]), first["stratum"], first["cluster_id"],
                                   first["inclusion_probability"]))  # fmt: skip
    return found


def sheet_id(tasks: Sequence[LabelTask], annotator: str) -> str:
    """A short name of one person's sheet: the same tasks for the same person give the same one."""
    text = json.dumps([annotator, *sorted(f"{task.metric} {task.content_sha256}" for task in tasks)])
    # The letter keeps spreadsheets from reading "12e45..." as a number.
    return f"s{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def as_row(task: LabelTask) -> dict[str, Any]:
    """The task as a JSON object."""
    return asdict(task)


def from_row(row: Mapping[str, Any]) -> LabelTask:
    """The task of a JSON object."""
    return LabelTask(**row)
