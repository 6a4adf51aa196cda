"""Labels of several people and a judge's scores to a decision, with its provenance and its counter."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from eval_pipeline.stages.calibration import (
    Bar,
    JudgeOnMetric,
    as_score,
    calibrate,
    calibrate_pairs,
    exit_code,
    human_agreement,
    report,
)  # fmt: skip
from eval_pipeline.tables import HUMAN_LABELS

NOW = datetime(2026, 6, 11, tzinfo=UTC)
METRIC = "answer_accuracy"


def truth(count: int, off_modal: int | None = None) -> list[float]:
    """A third each of 0, .5 and 1, or `off_modal` zeros and the rest 1."""
    return (
        [0.0] * off_modal + [1.0] * (count - off_modal)
        if off_modal is not None
        else [index % 3 / 2 for index in range(count)]
    )


def noisy(values: list[float], share: float, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(values)) < share, rng.integers(0, 3, len(values)) / 2, values).tolist()


def labels(values: list[float], annotator: str = "kim", provenance: str = "human", **columns: list) -> pl.DataFrame:
    rows = [
        {"dataset": "d", "item_id": f"q{index}", "content_sha256": f"t{index}", "metric": METRIC, "annotator": annotator,
         "score": value * 4, "value": value, "provenance": provenance, "texts": "{}",
         **{name: column[index] for name, column in columns.items()}}
        for index, value in enumerate(values)
    ]  # fmt: skip
    return HUMAN_LABELS.frame(rows)


def judged(values: list[float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {"metric": METRIC, "content_sha256": [f"t{index}" for index in range(len(values))], "value": values},
        schema={"metric": pl.String, "content_sha256": pl.String, "value": pl.Float64},
    )


def run(people: pl.DataFrame, judge: list[float | None], key: str = "k1", **named: object) -> pl.DataFrame:
    judges = {METRIC: JudgeOnMetric(key, "mini", "mini-2024")}
    return calibrate(people, judged(judge), judges, evaluation_id="e", now=NOW, **named)  # pyright: ignore[reportArgumentType]


def whole(frame: pl.DataFrame) -> dict:
    return frame.filter(pl.col("stratum") == "all").to_dicts()[0]


def test_a_good_judge_passes_on_100_labels() -> None:
    human = truth(100)
    row = whole(run(labels(human), noisy(human, 0.05)))
    assert (row["decision"], row["reason"], row["pair_count"], row["label_provenance"]) == ("pass", None, 100, "human")
    assert row["rho_lower"] > 0.7


@pytest.mark.parametrize(
    ("human", "reason", "needed"),
    [
        (truth(49), "n_too_small", 50),
        ([1.0] * 80, "constant_labels", None),
        (truth(100, off_modal=9), "few_off_modal_labels", 112),  # 9 of 100 off-modal: ten need 100 * 10 / 9.
    ],
)
def test_what_is_refused_says_why_and_how_many_labels_are_needed(
    human: list[float], reason: str, needed: int | None
) -> None:
    row = whole(run(labels(human), human))
    assert (row["decision"], row["reason"], row["labels_needed"]) == ("untested", reason, needed)
    found = calibrate_pairs(human, human)
    assert (found.report["decision"], found.report["reason"], found.exit_code) == ("untested", reason, 3)
    assert found.report["labels_needed"] == needed


@pytest.mark.parametrize("provenance", ["constructed", "model"])
def test_labels_that_are_not_human_certify_nothing_and_are_still_shown(provenance: str) -> None:
    human = truth(100)
    row = whole(run(labels(human, provenance=provenance), noisy(human, 0.05)))
    assert (row["decision"], row["reason"]) == ("untested", f"{provenance}_labels")
    assert row["spearman_rho"] > 0.8
    assert row["rho_lower"] > 0.7
    assert not row["is_provisional"]
    assert row["labels_needed"] == 50  # Human ones.


def test_where_people_labelled_only_their_labels_count() -> None:
    human = truth(60)
    both = pl.concat([labels(human), labels(truth(300), provenance="model", annotator="gpt")])
    row = whole(run(both, noisy(truth(300), 0.05)))
    assert (row["label_provenance"], row["pair_count"]) == ("human", 60)


def test_no_labels_at_all_are_untested() -> None:
    row = whole(run(labels([]), []))
    assert (row["decision"], row["reason"], row["pair_count"], row["label_provenance"]) == (
        "untested",
        "no_labels",
        0,
        "none",
    )


def test_invalid_replies_are_dropped_and_counted() -> None:
    human = truth(60)
    row = whole(run(labels(human), [None] * 3 + human[3:]))
    assert (row["pair_count"], row["dropped_count"]) == (57, 3)


def test_several_annotators_give_their_mean_and_an_adjudicated_label_settles() -> None:
    people = pl.concat([labels([0.0, 1.0]), labels([1.0, 1.0], "lee"), labels([0.5], "adjudicated")])
    # Text 0: adjudicated .5; text 1: mean of 1 and 1. The judge errs by .5 and 0: mean error .25.
    assert whole(run(people, [1.0, 1.0]))["mean_absolute_error"] == pytest.approx(0.25)


def test_two_people_agreeing_on_30_texts_give_a_ceiling() -> None:
    human = truth(60)
    second = noisy(human, 0.2, seed=4)
    row = whole(run(pl.concat([labels(human), labels(second, "lee")]), noisy(human, 0.1)))
    assert row["human_agreement"] == pytest.approx(
        human_agreement(pl.concat([labels(human), labels(second, "lee")])).value
    )
    details = json.loads(row["statistics"])
    kappa, ceiling = details["human_agreement_kappa"]["value"], details["rho_ceiling_by_human_noise"]["value"]
    assert ceiling == pytest.approx(kappa**0.5)
    assert report(row)["rho_ceiling_by_human_noise"]["value"] == ceiling
    few = pl.concat([labels(human), labels(second[:29], "lee")])
    assert whole(run(few, human))["human_agreement"] is None


def test_each_further_judge_on_the_same_labels_is_tested_at_a_lower_level() -> None:
    human = truth(100)
    first = run(labels(human), noisy(human, 0.1))
    second = run(labels(human), noisy(human, 0.1), "k2", history=first)
    later = second.with_columns(calibrated_at=pl.lit(NOW + timedelta(days=1)).cast(second["calibrated_at"].dtype))
    history = pl.concat([first, later])
    again = run(labels(human), noisy(human, 0.1), "k1", history=history)
    fresh = run(labels([*human, 0.5]), noisy([*human, 0.5], 0.1), "k3", history=history)
    assert [whole(frame)["attempt"] for frame in (first, second, again, fresh)] == [1, 2, 1, 1]
    assert whole(second)["rho_lower"] < whole(first)["rho_lower"]


def test_texts_used_in_tuning_refuse_the_whole() -> None:
    human = truth(100)
    row = whole(run(labels(human), human, contaminated={"t3"}))
    assert (row["decision"], row["reason"]) == ("untested", "labels_used_in_tuning")


def test_a_stratum_with_few_labels_shows_its_bias_and_no_rho() -> None:
    human = truth(90)
    people = labels(human, stratum=["faq"] * 60 + ["numbers"] * 20 + [None] * 10)
    rows = {row["stratum"]: row for row in run(people, [max(0.0, value - 0.5) for value in human]).to_dicts()}
    assert rows["faq"]["spearman_rho"] is not None
    assert (rows["numbers"]["spearman_rho"], rows["numbers"]["rho_status"]) == (None, "undefined")
    assert rows["numbers"]["bias"] < -0.2
    assert set(rows) == {"all", "faq", "numbers"}
    assert "rho_heterogeneity" in json.loads(rows["all"]["statistics"])


def test_answers_to_one_question_are_left_out_together() -> None:
    human = truth(120)
    judge = noisy(human, 0.2)
    alone = whole(run(labels(human), judge))
    grouped = whole(run(labels(human, cluster_id=[f"c{index // 6}" for index in range(120)]), judge))
    assert grouped["spearman_rho"] == alone["spearman_rho"]
    assert grouped["rho_lower"] != alone["rho_lower"]


def test_pairs_take_numbers_numerals_and_yes_no_words_and_drop_the_rest() -> None:
    cells = [1, "0.5", " Yes ", "아니오", True, "nan", "inf", "?", None, "=1+1", float("nan"), 1e300, []]
    assert [as_score(cell) for cell in cells] == [1.0, 0.5, 1.0, 0.0, 1.0] + [None] * 8


def test_pairs_on_other_scales_are_mapped_and_say_so() -> None:
    human = [0, 2, 4] * 30
    found = calibrate_pairs(human, [grade / 4 for grade in human]).report
    assert (found["decision"], found["bias"]["value"], found["mean_absolute_error"]["value"]) == ("pass", 0.0, 0.0)
    assert any("from 0 to 4" in warning for warning in found["warnings"])


def test_an_inconclusive_judge_says_how_many_labels_are_missing_and_where_from() -> None:
    human = truth(60)
    found = next(
        result for seed in range(80)
        if (result := calibrate_pairs(human, noisy(human, 0.25, seed))).report["decision"] == "inconclusive"
        and result.report["provisional"] and result.report["labels_needed"]
    )  # fmt: skip
    assert found.exit_code == 4
    assert found.plan.labels_missing == found.report["labels_needed"] - 60 > 0
    assert sum(found.plan.by_level.values()) == found.plan.labels_missing
    assert max(found.plan.by_level.values()) - min(found.plan.by_level.values()) <= 1


def test_the_minimum_off_the_most_frequent_label_can_be_raised() -> None:
    human = truth(100, off_modal=20)
    assert calibrate_pairs(human, human).report["decision"] == "pass"
    found = calibrate_pairs(human, human, bar=Bar(minimum_off_modal=30)).report
    assert (found["decision"], found["reason"]) == ("untested", "few_off_modal_labels")
    assert found["labels_needed"] == 150  # 20 of 100 are off-modal: thirty need 100 * 30 / 20.


def test_a_bar_of_zero_asks_for_any_agreement_at_all() -> None:
    human = truth(60)
    found = calibrate_pairs(human, noisy(human, 0.3), bar=Bar(0.0)).report
    assert (found["decision"], found["bar"]) == ("pass", 0.0)


def test_the_json_keys_are_the_documented_ones() -> None:
    found = calibrate_pairs(truth(60), truth(60), name="mini", metric=METRIC, bar=Bar(0.7, 50)).report
    documented = {
        "judge", "metric", "pair_count", "dropped_count", "spearman_rho", "kendall_tau_b", "quadratic_weighted_kappa", "bias",
        "mean_absolute_error", "rho_ceiling_by_marginals", "human_agreement", "decision", "provisional", "labels_needed",
    }  # fmt: skip
    assert documented <= set(found)
    assert set(found["spearman_rho"]) == {"value", "lower", "upper", "n", "status", "reason", "method", "level"}
    assert "NaN" not in json.dumps(found, allow_nan=False)
    row = whole(run(labels(truth(60)), list(truth(60))))
    assert documented <= set(report(row))


@pytest.mark.parametrize(("decision", "code"), [("pass", 0), ("fail", 1), ("untested", 3), ("inconclusive", 4)])
def test_exit_codes(decision: str, code: int) -> None:
    assert exit_code(decision) == code


@pytest.mark.parametrize(("human", "judge"), [([], []), ([None, None], [1, 0]), (["x"], ["y"]), ([1], [1])])
def test_nothing_usable_is_untested_and_no_error(human: list, judge: list) -> None:
    found = calibrate_pairs(human, judge)
    assert (found.report["decision"], found.exit_code) == ("untested", 3)
