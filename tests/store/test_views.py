"""What the published database says: each view's numbers, comments on everything, and only finished evaluations."""

from datetime import UTC, datetime

import duckdb
import pytest

from eval_pipeline.store.publish import publish, views
from eval_pipeline.store.query import query
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import SUMMARIES, TABLES

ASKED_FOR = {
    "latest_scores", "metric_trend", "item_history", "worst_items", "judge_agreement", "invalid_grades",
    "calibration_status", "gate_history", "cost_by_metric", "dataset_changes_by_version",
}  # fmt: skip


@pytest.fixture
def ask(published):
    return lambda sql: query(published, sql).rows()


def test_every_question_people_ask_has_a_view():
    assert {view.name for view in views()} == ASKED_FOR


def test_every_table_view_and_column_has_a_comment(published):
    with duckdb.connect(str(published), read_only=True) as connection:
        bare = connection.execute(
            "select table_name from duckdb_tables() where comment is null union all "
            "select view_name from duckdb_views() where comment is null and not internal union all "
            "select table_name || '.' || column_name from duckdb_columns() where comment is null and not internal"
        ).fetchall()
    assert bare == []


def test_tables_without_rows_exist_with_their_comments(tmp_path):
    database = publish(Warehouse(str(tmp_path)))
    found = dict(query(database, "select table_name, comment from duckdb_tables()").rows())
    assert found.keys() == {*TABLES, "publication"}
    assert found["scores"] == "One row is one metric's value for one response"
    for view in ASKED_FOR:
        assert query(database, f"select * from {view}").is_empty()


def test_a_column_that_many_tables_have_is_commented_for_the_view_it_is_in(ask):
    comments = dict(ask("select table_name || '.' || column_name, comment from duckdb_columns()"))
    assert comments["item_history.value"] == comments["scores.value"]
    assert comments["worst_items.value"] == comments["scores.value"]
    assert comments["worst_items.status"] == comments["scores.status"]
    assert comments["calibration_status.reason"] == comments["calibrations.reason"]


@pytest.mark.parametrize("view", ["metric_trend", "item_history", "worst_items", "judge_agreement", "invalid_grades",
                                  "cost_by_metric", "gate_history"])  # fmt: skip
def test_an_evaluation_that_died_enters_no_view(ask, view):
    assert {name for (name,) in ask(f"select evaluation_id from {view}")} == {"e1", "e2", "e3"}


def test_a_calibration_of_an_evaluation_that_died_is_not_the_status(ask):
    assert ask("select evaluation_id, attempt, calibrated_at from calibration_status") == [
        ("e3", 3, datetime(2026, 1, 3, 2, tzinfo=UTC))
    ]


def test_the_trend_shows_every_number_of_the_summary_with_what_it_is_of(filled):
    database = publish(filled)
    trend = query(database, "select * from metric_trend")
    assert set(SUMMARIES.schema) | {"started_at", "dataset", "dataset_tag", "system", "system_release", "judge"} <= set(
        trend.columns
    )
    # Means of 1 and 0, 0.25, 0.5: the third value is invalid and no zero.
    assert trend["mean"].to_list() == [0.5, 0.625, 0.75]
    stored = filled.read(SUMMARIES, ["e1", "e2", "e3"])
    assert trend.select(stored.columns).equals(stored)


def test_the_latest_scores_are_of_the_newest_evaluation_that_left_nothing_out(ask):
    assert {name for (name,) in ask("select evaluation_id from latest_scores")} == {"e2"}


def test_the_worst_items_come_with_texts_and_raw_replies_invalid_ones_first(ask):
    assert ask("select item_id, status, value, user_input, response, replies, outcomes from worst_items where evaluation_id = 'e1'") == [
        ("c", "invalid", None, "c?", "답 c", ["음", "아니요"], ["unparseable", "refused"]),
        ("b", "scored_both", 0.0, "b?", "답 b", None, None),
    ]  # fmt: skip


def test_agreement_counts_pairs_and_single_grades(ask):
    # Of the two pairs one agrees; the disagreements are 0 and 0.5.
    assert ask("select pair_count, agreement_share, mean_disagreement, single_count from judge_agreement where evaluation_id = 'e1'") == [
        (2, 0.5, 0.25, 0)
    ]  # fmt: skip


def test_cost_counts_calls_as_the_evaluation_does(ask):
    # Calls: 2 attempts + 1 repeat, 1 attempt; the ledger's answer is none and costs nothing.
    assert ask("select question_count, call_count, cached_count, input_tokens, output_tokens, cost_usd from cost_by_metric "
               "where evaluation_id = 'e1'") == [(3, 4, 1, 15, None, 0.75)]  # fmt: skip


def test_the_changes_of_a_dataset_say_which_version_and_why(ask):
    assert ask("select tag, item_id, change, message from dataset_changes_by_version") == [
        ("t1", "a", "added", "첫 판")
    ]


def test_an_item_has_its_history_in_order_of_time(ask):
    assert ask("select evaluation_id, value from item_history where item_id = 'b'") == [
        ("e1", 0.0),
        ("e2", 0.25),
        ("e3", 0.5),
    ]
