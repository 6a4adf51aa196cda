"""Results in the shapes other tools read: ragas and deepeval rows, flat scores, CSV that no spreadsheet executes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import polars as pl

from eval_pipeline.report.view import EvaluationView
from eval_pipeline.spreadsheets import safe_csv


def flat_scores(view: EvaluationView) -> pl.DataFrame:
    """One row per item: golden fields, response, and per metric `<metric>` and `<metric>_status`. Null is unknown."""
    golden = view.items.select("item_id", "stratum", "language", "user_input", "reference", "reference_contexts")
    answers = view.responses.select("item_id", "response", "retrieved_contexts", "error", "latency_seconds")
    base = answers.join(golden, on="item_id", how="left").select(*golden.columns, *answers.columns[1:]).sort("item_id")
    for metric in sorted(view.scores["metric"].unique()):
        mine = view.scores.filter(pl.col("metric") == metric).select(
            "item_id", pl.col("value").alias(metric), pl.col("status").alias(f"{metric}_status")
        )
        base = base.join(mine, on="item_id", how="left", maintain_order="left")
    return base


def ragas_rows(view: EvaluationView) -> list[dict[str, Any]]:
    """Rows as `EvaluationResult.to_pandas()` of ragas has them: its field names, then one column per metric."""
    fields = ("user_input", "response", "reference", "retrieved_contexts", "reference_contexts")
    names = sorted(view.scores["metric"].unique())
    return [{name: row[name] for name in (*fields, *names)} for row in flat_scores(view).iter_rows(named=True)]


def deepeval_rows(view: EvaluationView) -> list[dict[str, Any]]:
    """Rows as deepeval's `TestResult`: input, actual_output and so on, with `metrics_data`.

    `success` is null: this pipeline decides on sets, not on single items. A metric without a value carries its status
    as `error`.
    """
    scores: dict[str, list[dict[str, Any]]] = {}
    for score in view.scores.sort("metric").iter_rows(named=True):
        scores.setdefault(score["item_id"], []).append({
            "name": score["metric"], "score": score["value"], "success": None, "threshold": None, "reason": score["reason"],
            "error": None if score["value"] is not None else score["status"], "evaluation_model": view.evaluation["judge_model"],
        })  # fmt: skip
    return [
        {
            "name": row["item_id"], "input": row["user_input"], "actual_output": row["response"], "expected_output": row["reference"],
            "retrieval_context": row["retrieved_contexts"], "context": row["reference_contexts"], "success": None,
            "metrics_data": scores.get(row["item_id"], []),
        }
        for row in flat_scores(view).iter_rows(named=True)
    ]  # fmt: skip


def csv(frame: pl.DataFrame) -> bytes:
    """CSV with BOM for Excel that no spreadsheet executes. Lists become JSON."""
    lists = pl.col(pl.List(pl.String)).map_elements(_json, return_dtype=pl.String)
    return f"\ufeff{safe_csv(frame.with_columns(lists))}".encode()


def parquet(frame: pl.DataFrame) -> bytes:
    """The frame as one Parquet file."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()


SHAPES: dict[str, Callable[[EvaluationView], bytes]] = {
    "csv": lambda view: csv(flat_scores(view)),
    "parquet": lambda view: parquet(flat_scores(view)),
    "jsonl": lambda view: _lines(flat_scores(view).to_dicts()),
    "ragas": lambda view: _lines(ragas_rows(view)),
    "deepeval": lambda view: _lines(deepeval_rows(view)),
}
"""What an evaluation is exported as, by name; ragas and deepeval rows as JSON Lines."""


def _json(values: pl.Series) -> str:
    return json.dumps(values.to_list(), ensure_ascii=False)
