"""A column of human scores becomes labels: its scale is settled on the whole column."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval_pipeline.errors import DatasetInvalid
from eval_pipeline.intake import adding, datasets

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def add(tmp_path: Path, scores: list, metric: str | None) -> dict:
    rows = [
        {"user_input": f"q{n}?", "response": "r", "retrieved_contexts": ["c"], "human_score": score}
        for n, score in enumerate(scores)
    ]
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return adding.add(tmp_path / "d", tmp_path / "f.jsonl", "v1", "m", None, NOW, {}, metric=metric)


@pytest.mark.parametrize(("scores", "values"), [
    ([0, 1, 2, "2.0"], [0.0, 0.5, 1.0, 1.0]),  # grades 0, 1, 2: a 1 beside a 2 is the middle
    ([0, 1, 0.5, None], [0.0, 1.0, 0.5]),  # shares
])  # fmt: skip
def test_a_one_is_the_middle_grade_beside_a_two_and_the_whole_share_otherwise(
    tmp_path: Path, scores: list, values: list[float]
) -> None:
    assert add(tmp_path, scores, "context_relevance")["label_count"] == len(values)
    assert datasets.labels(tmp_path / "d", "d").sort("item_id")["value"].to_list() == values


@pytest.mark.parametrize(("scores", "metric", "problem"), [
    ([0, 3], "context_relevance", "row 2: human_score 3 is neither"), ([1], None, "add --metric"), (["good"], "context_relevance", "'good' is not a number"),
])  # fmt: skip
def test_a_score_off_its_scale_or_without_metric_stops_the_import_before_anything_is_written(
    tmp_path: Path, scores, metric, problem: str
) -> None:
    with pytest.raises(DatasetInvalid, match=problem):
        add(tmp_path, scores, metric)
    assert not (tmp_path / "d").exists()


def test_a_response_column_becomes_a_recorded_system(tmp_path: Path) -> None:
    done = add(tmp_path, [None, None], None)
    assert (done["response_count"], done["response_file"]) == (2, "datasets/d/responses/f.jsonl")
    assert (
        json.loads((tmp_path / "d" / "responses" / "f.jsonl").read_text(encoding="utf-8").splitlines()[0])["response"]
        == "r"
    )


def test_a_preview_says_what_an_import_would_do_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"input": "q?", "expected_output": "a", "tags": ["x"]}\n', encoding="utf-8")
    seen = adding.preview(tmp_path / "f.jsonl", {})
    assert (seen["tool"], seen["names"], seen["kept_in_metadata"]) == (
        "deepeval",
        {"input": "user_input", "expected_output": "reference"},
        ["tags"],
    )
    assert seen["first_rows"][0]["reference"] == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["f.jsonl"]
