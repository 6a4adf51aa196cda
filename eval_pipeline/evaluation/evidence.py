"""What earlier evaluations leave for this one: stored responses, rivals, the window."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from eval_pipeline.errors import EvaluationNotFound
from eval_pipeline.stages.gating import Past
from eval_pipeline.store import evidence as store_evidence
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import EVALUATIONS, GATE_DECISIONS, GOLDEN_ITEMS, RESPONSES, SCORES

if TYPE_CHECKING:
    from eval_pipeline.evaluation.steps import Evaluation


def complete(warehouse: Warehouse) -> pl.DataFrame:
    """`evaluations` rows, oldest first; an evaluation without its row is incomplete and is not here."""
    return warehouse.read(EVALUATIONS).sort("started_at", "evaluation_id")


def earlier_responses(
    warehouse: Warehouse, system: str, release: str, items: pl.DataFrame
) -> dict[str, dict[str, object]]:
    """Responses of the same system release to unchanged items, newest first wins; failed ones are asked again."""
    found: dict[str, dict[str, object]] = {}
    rows = complete(warehouse).filter((pl.col("system") == system) & (pl.col("system_release") == release))
    hashes = dict(items.select("item_id", "content_sha256").iter_rows())
    for evaluation in rows.reverse().iter_rows(named=True):
        golden = warehouse.read(GOLDEN_ITEMS, evaluation["dataset"]).filter(
            pl.col("dataset_version") == evaluation["dataset_version"]
        )
        same = {
            item_id
            for item_id, sha in golden.select("item_id", "content_sha256").iter_rows()
            if hashes.get(item_id) == sha
        }
        for row in warehouse.read(RESPONSES, evaluation["evaluation_id"]).iter_rows(named=True):
            if row["item_id"] in same and row["error"] is None:
                found.setdefault(row["item_id"], row)
        if len(found) == len(hashes):
            break
    return found


def stored_responses(warehouse: Warehouse, of: str, items: pl.DataFrame, evaluation_id: str) -> pl.DataFrame:
    """`responses` rows of this evaluation: those of an earlier one, failed ones included, in the order of the items.

    Raises:
        EvaluationNotFound: the earlier one has no response to some of the items.
    """
    stored = items.select("item_id").join(warehouse.read(RESPONSES, of), on="item_id", maintain_order="left")
    if stored.height < items.height:
        raise EvaluationNotFound(selector=of)
    of_this = stored.with_columns(evaluation_id=pl.lit(evaluation_id), is_reused=pl.lit(value=True))
    return of_this.select(*RESPONSES.schema)


def rivals(evaluation: Evaluation) -> pl.DataFrame | None:
    """Responses of the `against: system@release` of a pairwise metric; null when no metric compares."""
    against = next(
        (
            str(config.options["against"])
            for config in evaluation.project.config.metrics.values()
            if "against" in config.options
        ),
        None,
    )
    if against is None:
        return None
    system, _, release = against.partition("@")
    rows = complete(evaluation.warehouse).filter(pl.col("system") == system)
    if release:
        rows = rows.filter(pl.col("system_release") == release)
    if rows.is_empty():
        return None
    return evaluation.warehouse.read(RESPONSES, rows["evaluation_id"][-1])


def judges_of_record(
    warehouse: Warehouse, row: Mapping[str, Any], decisions: Sequence[Mapping[str, Any]]
) -> dict[str, frozenset[str]]:
    """Judge keys that may decide, by metric: those accepted; where nothing was decided yet, the first judge's of this
    system and dataset. A metric that no earlier evaluation has is not here.
    """
    rows = complete(warehouse).filter(
        (pl.col("system") == row["system"]) & (pl.col("dataset") == row["dataset"]) & ~pl.col("is_partial")
        & (pl.col("started_at") < row["started_at"])
    )  # fmt: skip
    found: dict[str, frozenset[str]] = {}
    for keys in rows["judge_keys"]:
        for metric, key in json.loads(keys).items():
            if key is not None and metric not in found:
                ours = [
                    one for one in decisions if one["metric"] == metric and one.get("system") in {None, row["system"]}
                ]
                found[metric] = frozenset(one["judge_key"] for one in ours) or frozenset([key])
    return found


def window(warehouse: Warehouse, row: Mapping[str, Any], size: int) -> tuple[Past, ...]:
    """The evaluations before this one, of the same system and dataset: complete, no replays, oldest first.

    More are taken than the window holds, since those of another judge fall out later, metric by metric.
    """
    rows = complete(warehouse).filter(
        (pl.col("system") == row["system"]) & (pl.col("dataset") == row["dataset"]) & ~pl.col("is_partial")
        & ~pl.col("is_replay") & (pl.col("started_at") < row["started_at"])
    )  # fmt: skip
    return tuple(
        Past(name, warehouse.read(SCORES, name), _has_regressed(warehouse, name))
        for name in rows["evaluation_id"].to_list()[-3 * size :]
    )


def _has_regressed(warehouse: Warehouse, evaluation_id: str) -> bool:
    """Whether its own gate found a regression; such a night is no reference for the next."""
    rules = warehouse.read(GATE_DECISIONS, evaluation_id)
    return bool(((rules["verdict"] == "FAIL") & rules["rule"].str.starts_with("regression")).any())


def pinned(folder: Path, label: str) -> Past | None:
    """The pinned baseline of a dataset, or null."""
    found = store_evidence.read_baseline(folder, label)
    return None if found is None or found.is_empty() else Past(str(found["evaluation_id"][0]), found)
