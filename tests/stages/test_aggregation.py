"""Summaries of scores: known numbers, and what they cannot leave out."""

from __future__ import annotations

import polars as pl
import pytest
from scenario import METRIC, scores

from eval_pipeline.stages.aggregation import MetricPolicy, accounting_violations, summarise
from eval_pipeline.vocabulary import NoResponsePolicy, ScoreStatus


def whole(frame: pl.DataFrame, **named: object) -> dict:
    found = summarise(frame, evaluation_id="e", **named)  # pyright: ignore[reportArgumentType]
    return found.filter(pl.col("stratum") == "all").to_dicts()[0]


def test_counts_bounds_and_the_worst_items_of_a_small_set() -> None:
    statuses = {
        5: ScoreStatus.NO_RESPONSE,
        6: ScoreStatus.NO_CLAIMS,
        7: ScoreStatus.NOT_APPLICABLE,
        8: ScoreStatus.NOT_ASKED,
    }
    row = whole(scores([1.0, 1.0, 0.5, 0.25, None, 0.0, 0.0, 0.0, 0.0], statuses=statuses))
    counts = ("scored", "no_response", "invalid", "no_claims", "not_applicable", "not_asked")
    assert [row[f"{name}_count"] for name in counts] == [4, 1, 1, 1, 1, 1]
    # Values 1, 1, .5, .25 and the failed response 0: 2.75 / 5. Two unknown: 2.75 / 7 and 4.75 / 7.
    assert row["mean"] == pytest.approx(0.55)
    assert row["mean_lower_bound"] == pytest.approx(2.75 / 7)
    assert row["mean_upper_bound"] == pytest.approx(4.75 / 7)
    assert row["invalid_share"] == pytest.approx(1 / 5)
    assert row["worst_item_ids"] == ["q0004", "q0008"]  # One of seven items; the unknown come first, tied ones all.
    assert row["cvar10"] == 0.0
    assert row["cvar10_lower"] is None


def test_failed_responses_are_left_out_where_the_policy_says_so() -> None:
    frame = scores([1.0, 0.5, 0.0], statuses={2: ScoreStatus.NO_RESPONSE})
    assert whole(frame)["mean"] == pytest.approx(0.5)
    left_out = whole(frame, policies={METRIC: MetricPolicy(NoResponsePolicy.EXCLUDE)})
    assert left_out["mean"] == pytest.approx(0.75)
    assert left_out["no_response_count"] == 1


def test_all_invalid_has_bounds_and_no_mean() -> None:
    row = whole(scores([None] * 30))
    assert (row["mean"], row["mean_status"], row["mean_reason"]) == (None, "undefined", "all_invalid")
    assert (row["mean_lower_bound"], row["mean_upper_bound"], row["cvar10"]) == (0.0, 1.0, None)


def test_cvar_is_the_mean_of_the_worst_tenth() -> None:
    row = whole(scores([0.0] * 5 + [0.5] * 10 + [1.0] * 85))
    assert row["cvar10"] == pytest.approx((5 * 0 + 5 * 0.5) / 10)
    assert row["q10"] == 0.5
    assert row["cvar10_status"] == "ok"
    assert row["catastrophic_share"] == pytest.approx(0.05)
    assert len(row["worst_item_ids"]) == 15  # The ties at .5 are listed too.


def test_rows_of_shared_clusters_widen_the_interval() -> None:
    values = [1.0] * 60 + [0.0] * 20 + [1.0] * 20
    alone, grouped = whole(scores(values)), whole(scores(values, clusters=[f"c{index // 10}" for index in range(100)]))
    assert grouped["mean"] == alone["mean"]
    assert grouped["mean_interval_lower"] < alone["mean_interval_lower"]
    assert grouped["catastrophic_share_upper"] > alone["catastrophic_share_upper"]


def test_the_weighted_mean_follows_declared_weights_and_needs_every_stratum() -> None:
    frame = scores([1.0, 0.0, 0.0, 1.0, 0.5, 0.5])  # faq: 1, 1; numbers: 0, 0, .5, .5.
    assert whole(frame, weights={"faq": 0.5, "numbers": 0.5})["weighted_mean"] == pytest.approx(0.5 * 1 + 0.5 * 0.25)
    assert whole(frame, weights={"faq": 0.5, "tables": 0.5})["weighted_mean"] is None
    assert whole(frame)["weighted_mean"] is None


def test_each_stratum_has_its_own_row_and_hostile_names_stay_names() -> None:
    frame = scores([1.0, 0.0]).with_columns(stratum=pl.Series(["'; DROP TABLE x --", "\x00"]))
    found = summarise(frame, evaluation_id="e")
    assert set(found["stratum"]) == {"all", "'; DROP TABLE x --", "\x00"}
    assert accounting_violations(found) == []


def test_an_item_that_is_not_accounted_for_is_found() -> None:
    found = summarise(scores([1.0, 0.0, None]), evaluation_id="e").with_columns(scored_count=pl.lit(1, pl.Int64))
    assert "answer_accuracy / all" in accounting_violations(found)


def test_no_scores_give_no_summary() -> None:
    assert summarise(scores([]), evaluation_id="e").is_empty()
