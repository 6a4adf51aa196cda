"""Two evaluations, or two judges, on the same items."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scenario import METRIC, base, flaky, scores

from eval_pipeline.stages import comparison, judge_comparison
from eval_pipeline.stages.judge_comparison import change_log
from eval_pipeline.tables import SCORES
from eval_pipeline.vocabulary import Language

OLD = np.array([1.0, 1.0, 0.75, 0.5, 0.0, 0.25])


def test_a_comparison_counts_what_moved_and_names_it() -> None:
    new = [1.0, 0.25, 0.75, None, 0.5, 0.25]
    row = comparison.compare(scores(OLD), scores(new))[0]
    # Pairs with both grades: 1-1, 1-.25, .75-.75, 0-.5, .25-.25: (-.75 + .5) / 5.
    assert row["difference"] == pytest.approx(-0.05)
    assert row["lower"] < -0.05 < row["upper"]
    assert (row["shared_count"], row["lost_grade_count"], row["worse_count"], row["better_count"]) == (5, 1, 1, 1)
    assert row["newly_failed"] == ["q0001", "q0003"]
    assert row["newly_passed"] == ["q0004"]
    assert row["worst_changes"] == ["q0001"]
    assert row["is_same_judge"]
    # Two changed cases, one each way: every sum of +-.75 +-.5 is at least as far from 0 on one side as -.25: p = 1.
    assert row["p"] == pytest.approx(1.0)


def test_only_unchanged_items_are_compared() -> None:
    row = comparison.compare(scores(OLD), scores(OLD, versions={0: "v2"}))[0]
    assert (row["shared_count"], row["only_old_count"], row["only_new_count"]) == (5, 1, 1)


def test_nothing_shared_has_no_difference() -> None:
    row = comparison.compare(scores(OLD), scores(OLD, metric="faithfulness"))[0]
    assert (row["metric"], row["difference"], row["p"], row["shared_count"]) == (METRIC, None, None, 0)


def test_a_change_that_pooling_hides_is_named() -> None:
    # Strata alternate numbers, numbers, faq: most items fall a little, few rise a lot.
    old, new = np.full(40, 0.5), np.full(40, 0.25)
    names = ["a"] * 31 + ["b"] * 9
    new[31:] = 1.5 - 0.5  # 31 fall by .25, 9 rise by .5: -7.75 + 4.5 < 0, so nothing is hidden.
    frames = [scores(side).with_columns(stratum=pl.Series(names)) for side in (old, new)]
    assert not comparison.compare(*frames)[0]["is_hidden_by_pooling"]
    new[:31] = 0.49  # Now 31 fall by .01: -.31 + 4.5 > 0, though 31 of 40 items fell.
    frames[1] = scores(new).with_columns(stratum=pl.Series(names))
    row = comparison.compare(*frames)[0]
    assert row["is_hidden_by_pooling"]
    assert [part["stratum"] for part in row["strata"]] == ["a", "b"]


def test_a_pinned_baseline_without_strata_compares() -> None:
    kept = ["evaluation_id", "metric", "item_id", "item_sha256", "judge_key", "status", "value", "lower", "upper"]
    row = comparison.compare(scores(OLD).select(kept), scores(OLD))[0]
    assert (row["difference"], row["shared_count"]) == (0.0, 6)
    assert row["lower"] < 0 < row["upper"]  # No case changed: the interval stays open.


def test_an_equivalent_judge_continues_the_series() -> None:
    old = base(400)
    row = judge_comparison.compare(scores(old), scores(flaky(old, 0.05, 3), judge_key="k2"))[0]
    assert (row["equivalent"], row["decision"], row["n"]) == (True, "continues", 400)
    assert -0.03 < row["lower"] <= row["mean_shift"] <= row["upper"] < 0.03
    assert row["quadratic_weighted_kappa"] > 0.9
    assert sum(cell["count"] for cell in row["levels"]) == 400
    assert "the series continues" in change_log(row)
    assert "계열이 이어집니다" in change_log(row, Language.KO)


def test_a_lenient_judge_starts_a_new_series() -> None:
    old = base(400)
    row = judge_comparison.compare(scores(old), scores(np.minimum(1.0, old + 0.25), judge_key="k2"))[0]
    # Levels below 1 are 30 % of the items: the mean rises by about .3 * .25 = .075.
    assert row["mean_shift"] == pytest.approx(0.075, abs=0.02)
    assert (row["equivalent"], row["decision"]) == (False, "new_series")
    assert row["cvar10_shift"] > 0.2


def test_a_judge_without_calibration_continues_nothing() -> None:
    old = base(400)
    row = judge_comparison.compare(scores(old), scores(old), is_calibrated={})[0]
    assert row["decision"] == "not_calibrated"


def test_both_judges_are_compared_on_the_same_labels() -> None:
    human = base(120, seed=5)
    labels = pl.DataFrame({"metric": METRIC, "human": human, "old": flaky(human, 0.1, 1), "new": flaky(human, 0.9, 2)})
    row = judge_comparison.compare(scores(OLD), scores(OLD), labels=labels)[0]
    assert row["rho_old"] > row["rho_new"]
    assert row["rho_difference_p"] < 0.05


def test_judges_without_a_shared_response_say_so() -> None:
    frame = scores(OLD).with_columns(content_sha256=pl.lit("other"))
    row = judge_comparison.compare(scores(OLD), frame)[0]
    assert (row["n"], row["decision"], row["mean_shift"]) == (0, "nothing_shared", None)
    assert "no response was judged by both" in change_log(row)
    assert "함께 판정한 응답이 없습니다" in change_log(row, Language.KO)
    assert judge_comparison.compare(SCORES.frame(), SCORES.frame()) == []


def row_of(metric, difference, p, *, same=True):
    return {"metric": metric, "difference": difference, "p": p, "is_same_judge": same}


@pytest.mark.parametrize(
    ("rows", "change", "better", "worse"),
    [
        ([row_of("a", -0.1, 0.01), row_of("b", 0.1, 0.9)], "worse", [], ["a"]),
        ([row_of("a", 0.1, 0.01), row_of("b", 0.1, 0.02)], "better", ["a", "b"], []),
        ([row_of("a", 0.1, 0.01), row_of("b", -0.1, 0.02)], "mixed", ["a"], ["b"]),
        # .03 alone would do; of two tested together the smaller p has to be .025 at most.
        ([row_of("a", -0.1, 0.03), row_of("b", 0.1, 0.9)], "no_clear_change", [], []),
        ([row_of("a", -0.9, 1e-9, same=False), row_of("b", 0.0, 1.0)], "no_clear_change", [], []),
        ([row_of("a", -0.9, 1e-9, same=False), row_of("b", None, None)], "nothing_shared", [], []),
    ],
)
def test_several_metrics_together_say_one_thing(rows, change, better, worse) -> None:
    found = comparison.overall(rows)
    assert (found["change"], found["better"], found["worse"]) == (change, better, worse)
