"""Row suites on the real tables: broken rows are named, good ones are silent, a broken rule is no finding."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_pipeline.intake import datasets
from eval_pipeline.quality import validate as subject
from eval_pipeline.quality.validate import validate
from eval_pipeline.tables import DATASET_VERSIONS, GOLDEN_ITEMS, SCORES, VERDICTS

FOLDER = Path(__file__).parents[2] / "datasets" / "helpdesk"


def test_the_bundled_items_keep_their_suite() -> None:
    assert validate(GOLDEN_ITEMS, datasets.load(FOLDER).items) == []


def test_broken_items_are_named_by_rule() -> None:
    rows = [{"item_id": "q1", "user_input": "why?", "reference": "x" * 20_001}, {"item_id": "q2", "user_input": "  ", "reference": "x"},
            {"item_id": "q3", "user_input": "why", "updated_at": "yesterday"}, {"item_id": "q3", "user_input": "왜", "reference": "x"}]  # fmt: skip
    found = {one.rule: (one.severity, one.item_ids) for one in validate(GOLDEN_ITEMS, datasets.items_frame("d", rows))}
    assert found == {
        "item_id is unique": ("error", ("q3", "q3")), "user_input is a question": ("error", ("q2",)), "reference is there": ("warning", ("q3",)),
        "reference is not a document": ("warning", ("q1",)), "updated_at is an ISO date": ("warning", ("q3",)),
    }  # fmt: skip


def score(item_id: str, **cells) -> dict:
    return {"evaluation_id": "e", "metric": "m", "item_id": item_id, "stratum": "s", "status": "scored", "value": 0.5, "lower": 0.5, "upper": 0.5,
            "components": "{}", "outcomes": [], "content_sha256": "c", "item_sha256": "i"} | cells  # fmt: skip


def test_a_score_out_of_range_or_outside_its_bounds_is_named_with_its_metric() -> None:
    rows = [
        score("q1"),
        score("q2", value=1.5, upper=1.5),
        score("q3", lower=0.9),
        score("q4", status="fine"),
        score("q5", value=None),
    ]
    found = {one.rule: one.item_ids for one in validate(SCORES, SCORES.frame(rows))}
    assert found == {
        "value lies in [0, 1]": ("q2 / m",),
        "upper lies in [0, 1]": ("q2 / m",),
        "lower <= value": ("q3 / m",),
        "status is a known word": ("q4 / m",),
    }


def verdict(item_id: str, **cells) -> dict:
    return {"evaluation_id": "e", "metric": "m", "item_id": item_id, "part_source": "response", "part_index": 0, "template_id": "t", "sample_index": 0,
            "language": "ko", "expects": "grade", "outcome": "graded", "grade": 4, "value": 1.0, "method": "single", "attempt_count": 1,
            "attempt_outcomes": ["graded"], "transport_retry_count": 0, "is_cached": False, "call_count": 1} | cells  # fmt: skip


def test_a_grade_on_an_unusable_reply_is_named() -> None:
    rows = [
        verdict("q1"),
        verdict("q2", outcome="refused"),
        verdict("q3", outcome="refused", grade=None, value=None),
        verdict("q4", cost_usd=-1.0),
    ]
    found = {one.rule: one.item_ids for one in validate(VERDICTS, VERDICTS.frame(rows))}
    assert found == {"only a graded verdict has a grade": ("q2 / m",), "cost_usd is not negative": ("q4 / m",)}


def test_a_table_without_a_suite_of_its_own_still_has_its_column_rules() -> None:
    row = {
        "dataset": "d",
        "dataset_version": "v",
        "tag": None,
        "message": "m",
        "created_at": datetime(2026, 6, 1, tzinfo=UTC),
        "item_count": 1,
        "stratum_counts": "{}",
    }
    assert [one.rule for one in validate(DATASET_VERSIONS, DATASET_VERSIONS.frame([row]))] == ["tag is there"]


def test_an_expectation_that_breaks_is_an_error_and_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    import great_expectations.expectations as gxe

    broken = gxe.ExpectColumnValuesToMatchRegex(
        column="no_such_column", regex="x", meta={"rule": "r", "severity": "error"}
    )
    monkeypatch.setattr(subject, "_expectations", lambda table: [broken])
    with pytest.raises(RuntimeError, match="no_such_column"):
        validate(GOLDEN_ITEMS, datasets.load(FOLDER).items)


def test_data_docs_are_written_as_pages(tmp_path: Path) -> None:
    page = subject.data_docs(GOLDEN_ITEMS, datasets.load(FOLDER).items, tmp_path / "docs")
    assert "golden_items" in page.read_text(encoding="utf-8")
