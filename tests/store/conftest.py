"""A warehouse written by hand: two finished nights, one partial, one that died, each number known."""

from datetime import UTC, datetime

import polars as pl
import pytest

from eval_pipeline.store.publish import publish
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import (
    CALIBRATIONS,
    DATASET_CHANGES,
    DATASET_VERSIONS,
    EVALUATIONS,
    GATE_DECISIONS,
    GOLDEN_ITEMS,
    RESPONSES,
    SCORES,
    SUMMARIES,
    VERDICTS,
)

EMPTY = {pl.String(): "-", pl.Int64(): 0, pl.Float64(): 0.0, pl.Boolean(): False, pl.List(pl.String): [],
         pl.Datetime("us", "UTC"): datetime(2026, 1, 1, tzinfo=UTC)}  # fmt: skip


def rows(table, *given):
    """Rows with what is given, null where null is allowed, and something harmless elsewhere."""
    base = {column.name: None if column.is_nullable else EMPTY[column.dtype] for column in table.columns}
    return table.frame([base | row for row in given])


def night(day):
    return datetime(2026, 1, day, 2, tzinfo=UTC)


@pytest.fixture
def filled(tmp_path):
    """A warehouse of one's own to change."""
    return fill(str(tmp_path / "warehouse"))


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """The database of such a warehouse, to read only."""
    return publish(fill(str(tmp_path_factory.mktemp("published"))))


def fill(root):
    """e1 and e2 are whole, e3 partial, e4 died before its `evaluations` row."""
    made = Warehouse(root)
    made.write(
        DATASET_VERSIONS,
        "faq",
        rows(DATASET_VERSIONS, {"dataset": "faq", "dataset_version": "v", "tag": "t1", "message": "첫 판"}),
    )
    made.write(
        DATASET_CHANGES,
        "faq",
        rows(DATASET_CHANGES, {"dataset": "faq", "dataset_version": "v", "item_id": "a", "change": "added"}),
    )
    made.write(GOLDEN_ITEMS, "faq", rows(GOLDEN_ITEMS, *({"dataset": "faq", "dataset_version": "v", "item_id": item,
               "user_input": f"{item}?", "stratum": "s", "language": "ko"} for item in "abc")))  # fmt: skip
    for number, name in enumerate(("e1", "e2", "e3", "e4"), 1):
        here = {"evaluation_id": name, "metric": "m"}
        made.write(
            RESPONSES,
            name,
            rows(RESPONSES, *({"evaluation_id": name, "item_id": item, "response": f"답 {item}"} for item in "abc")),
        )
        made.write(SCORES, name, rows(SCORES,
            here | {"item_id": "a", "stratum": "s", "status": "scored_both", "value": 1.0, "grade_1": 4, "grade_2": 4, "disagreement": 0.0},
            here | {"item_id": "b", "stratum": "s", "status": "scored_both", "value": 0.25 * number - 0.25, "grade_1": 2, "grade_2": 0,
                    "disagreement": 0.5},
            here | {"item_id": "c", "stratum": "s", "status": "invalid"}))  # fmt: skip
        made.write(VERDICTS, name, rows(VERDICTS,
            here | {"item_id": "c", "template_id": "m.2", "outcome": "refused", "reply": "아니요", "attempt_count": 2,
                    "transport_retry_count": 1, "call_count": 3, "cost_usd": 0.25, "input_tokens": 10},
            here | {"item_id": "c", "template_id": "m.1", "outcome": "unparseable", "reply": "음", "attempt_count": 1, "call_count": 1,
                    "cost_usd": 0.5, "input_tokens": 5},
            here | {"item_id": "a", "template_id": "m.1", "outcome": "graded", "attempt_count": 1, "is_cached": True}))  # fmt: skip
        made.write(SUMMARIES, name, rows(SUMMARIES, here | {"stratum": "all", "item_count": 3, "scored_count": 2, "invalid_count": 1,
                   "mean": (1 + 0.25 * number - 0.25) / 2, "mean_status": "ok", "worst_item_ids": ["c", "b"]}))  # fmt: skip
        made.write(GATE_DECISIONS, name, rows(GATE_DECISIONS, {"evaluation_id": name, "policy": "nightly", "rule": "decision",
                   "metric": "all", "verdict": "PASS"}))  # fmt: skip
        made.write(CALIBRATIONS, "k", rows(CALIBRATIONS, {"judge_key": "k", "metric": "m", "stratum": "all", "labels_sha256": name,
                   "evaluation_id": name, "decision": "pass", "attempt": number, "calibrated_at": night(number)}), part=name)  # fmt: skip
        if name != "e4":
            made.write(EVALUATIONS, name, rows(EVALUATIONS, {"evaluation_id": name, "dataset": "faq", "dataset_version": "v",
                       "dataset_tag": "t1", "system": "rag", "judge": "j", "started_at": night(number),
                       "is_partial": name == "e3"}))  # fmt: skip
    return made
