"""What `--json` prints: stable names, statistics as objects, null where undefined, never NaN."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from eval_pipeline.report.view import EvaluationView
from eval_pipeline.vocabulary import Language


def statistic(value: float | None, lower: float | None = None, upper: float | None = None, n: int | None = None,
              status: str | None = None, reason: str | None = None, method: str = "", level: float | None = None) -> dict[str, Any]:  # fmt: skip
    """A statistic in its flat form."""
    found = status or ("undefined" if value is None else "ok")
    return {
        "value": value,
        "lower": lower,
        "upper": upper,
        "n": n,
        "status": found,
        "reason": reason,
        "method": method,
        "level": level,
    }


def summary_json(row: dict[str, Any]) -> dict[str, Any]:
    """One summary."""
    counts = ("item_count", "scored_count", "no_response_count", "invalid_count", "no_claims_count", "not_applicable_count",
              "not_asked_count")  # fmt: skip
    n, status, reason = row["scored_count"] + row["no_response_count"], row["mean_status"], row["mean_reason"]
    return {
        "metric": row["metric"], "stratum": row["stratum"], **{name: row[name] for name in counts},
        "mean": statistic(row["mean"], row["mean_interval_lower"], row["mean_interval_upper"], n, status, reason, "pseudo_observation", 0.95),
        "mean_lower_bound": row["mean_lower_bound"],
        "mean_upper_bound": row["mean_upper_bound"],
        "mean_interval": {"lower": row["mean_interval_lower"], "upper": row["mean_interval_upper"], "level": 0.95, "estimand": "population"},
        "q10": statistic(row["q10"], n=n),
        "cvar10": statistic(row["cvar10"], row["cvar10_lower"], None, n, row["cvar10_status"], None, "pseudo_case", 0.95),
        "catastrophic_share": statistic(row["catastrophic_share"], None, row["catastrophic_share_upper"], n, None, None, "clopper_pearson", 0.95),
        "invalid_share": statistic(row["invalid_share"], None, row["invalid_share_upper"], row["scored_count"] + row["invalid_count"],
                                   None, None, "wilson", 0.95),
        "worst_item_ids": row["worst_item_ids"],
    }  # fmt: skip


def gate_json(rows: pl.DataFrame, exit_code: int) -> dict[str, Any]:
    """The gate's decision and rules."""
    listed = rows.to_dicts()
    decision = next((row["verdict"] for row in listed if row["rule"] == "decision"), None)
    rules = [
        {"rule": r["rule"], "metric": r["metric"], "verdict": r["verdict"], "evidence": r["evidence"], "item_ids": r["item_ids"],
         "numbers": json.loads(r["numbers"])}
        for r in listed if r["rule"] != "decision"
    ]  # fmt: skip
    return {"decision": decision, "exit_code": exit_code, "rules": rules}


def run_json(view: EvaluationView, *, database: str, report: str, exit_code: int) -> dict[str, Any]:
    """What `run` and `demo` print."""
    return {
        "evaluation_id": view.evaluation["evaluation_id"],
        "database": database,
        "report": report,
        "is_partial": view.evaluation["is_partial"],
        "partial_reason": view.evaluation["partial_reason"],
        "warnings": view.remarks(Language.EN),
        "summaries": [
            summary_json(row) | {"true_quality": view.true_quality(row["metric"]) if row["stratum"] == "all" else None}
            for row in view.summaries.iter_rows(named=True)
        ],
        "gate": gate_json(view.gate, exit_code),
    }
