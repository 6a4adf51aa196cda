"""What each judge costs and how far it is trusted, over stored evaluations."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from eval_pipeline.evaluation.project import Project
from eval_pipeline.stats.multiplicity import JudgeCandidate, cheapest_judge
from eval_pipeline.stats.stat import Stat
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CALIBRATIONS, EVALUATIONS, SCORES, VERDICTS
from eval_pipeline.vocabulary import Provenance

BIAS_LIMIT = 0.10


def judge_status(project: Project) -> list[dict[str, Any]]:
    """One row per judge and metric: newest calibration, and cost per 1,000 scored items in the evaluation that made it.

    The cost is null when a price is unknown or every reply came from the ledger.
    """
    warehouse = Warehouse(project.warehouse)
    known = set(warehouse.read(EVALUATIONS)["evaluation_id"])
    rows = warehouse.read(CALIBRATIONS).filter(
        (pl.col("stratum") == "all") & pl.col("evaluation_id").is_in(list(known))
    )
    newest = rows.sort("calibrated_at").unique(subset=["judge_key", "metric"], keep="last").sort("metric", "judge")
    return [
        {
            "metric": row["metric"], "judge": row["judge"], "judge_model": row["judge_model"], "labels": row["label_provenance"],
            "n": row["pair_count"], "rho": row["spearman_rho"], "lower": row["rho_lower"],
            "status": "provisional" if row["is_provisional"] else row["decision"],
            "cost_per_1k_usd": _cost_per_1k(warehouse, row["evaluation_id"], row["metric"]), "bias": row["bias"], "statistic": json.loads(row["statistics"])["spearman_rho"],
        }
        for row in newest.iter_rows(named=True)
    ]  # fmt: skip


def _cost_per_1k(warehouse: Warehouse, evaluation_id: str, metric: str) -> float | None:
    verdicts = warehouse.read(VERDICTS, evaluation_id).filter(pl.col("metric") == metric)
    scored = (
        warehouse.read(SCORES, evaluation_id)
        .filter((pl.col("metric") == metric) & pl.col("value").is_not_null())
        .height
    )
    called = verdicts.filter(~pl.col("is_cached"))
    if called.is_empty() or not scored or called["cost_usd"].null_count():
        return None
    return float(called["cost_usd"].sum()) / scored * 1000


def cheapest(project: Project, metric: str) -> dict[str, Any]:
    """The cheapest judge that passes on a metric, the bar tested with Holm over all candidates (selection inflates error).

    A judge without human labels, with an unknown cost, or with a bias over .10 is a candidate that may not be picked.
    """
    rows = [row for row in judge_status(project) if row["metric"] == metric]
    choice = cheapest_judge([_candidate(row) for row in rows], project.config.calibration.bar)
    costs = {row["judge"]: row["cost_per_1k_usd"] for row in rows}
    nearest = f"; nearest is {choice.nearest}" if choice.nearest else ""
    return {"judge": choice.name, "cost_per_1k_usd": costs.get(choice.name), "reason": f"{choice.reason}{nearest}",
            "adjusted_p": choice.adjusted_p}  # fmt: skip


def _candidate(row: dict[str, Any]) -> JudgeCandidate:
    stored = row["statistic"]
    blocked = None
    if row["labels"] != Provenance.HUMAN.value:
        blocked = "no human labels"
    elif row["cost_per_1k_usd"] is None:
        blocked = "unknown cost"
    elif abs(row["bias"] or 0.0) > BIAS_LIMIT:
        blocked = "bias"
    rho = Stat(
        name="spearman_rho", value=stored["value"], n=stored["n"], lower=stored["lower"], upper=stored["upper"], level=stored["level"],
        sided="one", method=stored["method"] or "", status=stored["status"], reason=stored["reason"], details=stored.get("details") or {},
    )  # fmt: skip
    return JudgeCandidate(row["judge"], rho, row["cost_per_1k_usd"] or 0.0, blocked)
