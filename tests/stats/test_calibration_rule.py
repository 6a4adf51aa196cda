"""Certification of a judge: what it refuses, what it decides, what it says is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eval_pipeline.stats.calibration_rule import CalibrationResult, calibrate, calibrate_strata, heterogeneity


def labels(n: int, low: int, middle: int) -> list[float]:
    return [0.0] * low + [0.5] * middle + [1.0] * (n - low - middle)


def noisy(human: list[float], share: float, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    swap = rng.random(len(human)) < share
    return np.where(swap, rng.integers(0, 5, len(human)) / 4, human).tolist()


def test_49_labels_are_untested_however_good_the_judge() -> None:
    human = labels(49, 15, 15)
    result = calibrate(human, human)
    assert (result.decision, result.reason, result.labels_needed) == ("untested", "n_too_small", 50)
    assert result.spearman_rho.value == 1.0


def test_a_missing_judge_score_does_not_count_as_a_label() -> None:
    human = labels(50, 15, 15)
    result = calibrate(human, [None, *human[1:]])
    assert (result.decision, result.pair_count, result.dropped_count) == ("untested", 49, 1)


def test_constant_labels_are_untested() -> None:
    result = calibrate([1.0] * 80, noisy([1.0] * 80, 0.3))
    assert (result.decision, result.reason) == ("untested", "constant_labels")


def test_a_constant_judge_is_untested() -> None:
    result = calibrate(labels(80, 20, 20), [1.0] * 80)
    assert (result.decision, result.reason) == ("untested", "constant_judge")


@pytest.mark.parametrize(("off_modal", "decision"), [(9, "untested"), (10, "pass")])
def test_fewer_than_ten_labels_off_the_modal_level_are_untested(off_modal: int, decision: str) -> None:
    human = labels(100, off_modal - 4, 4)
    result = calibrate(human, human)
    assert (result.decision, result.off_modal_count) == (decision, off_modal)
    assert result.reason == ("few_off_modal_labels" if decision == "untested" else None)


def test_labels_used_in_tuning_are_refused() -> None:
    human = labels(100, 30, 30)
    assert calibrate(human, human, contaminated_count=1).reason == "labels_used_in_tuning"


def test_the_minimum_can_be_raised_not_lowered() -> None:
    human = labels(60, 20, 20)
    assert calibrate(human, human, minimum_labels=100).decision == "untested"
    assert calibrate(human[:20] + human[40:60], human[:20] + human[40:60], minimum_labels=10).decision == "untested"


def test_a_good_judge_passes_a_bad_one_fails() -> None:
    human = labels(200, 60, 60)
    assert calibrate(human, noisy(human, 0.05)).decision == "pass"
    assert calibrate(human, noisy(human, 0.8)).decision == "fail"


def test_a_point_above_the_bar_alone_is_provisional_and_says_how_many_labels_are_missing() -> None:
    human = labels(60, 15, 15)
    result = next(
        found
        for seed in range(50)
        if (found := calibrate(human, noisy(human, 0.25, seed))).spearman_rho.value is not None
        and 0.72 < found.spearman_rho.value < 0.78
    )
    assert (result.decision, result.provisional, result.reason) == ("inconclusive", True, "limits_include_bar")
    assert result.labels_needed is not None and result.labels_needed > 60


def test_the_kth_use_of_the_same_labels_is_tested_at_alpha_over_k() -> None:
    human = labels(100, 30, 30)
    judge = noisy(human, 0.2)
    first, third = calibrate(human, judge), calibrate(human, judge, attempt=3)
    assert third.level == pytest.approx(1 - 0.05 / 3)
    assert lower(third) < lower(first)


def lower(result: CalibrationResult) -> float:
    assert result.spearman_rho.lower is not None
    return result.spearman_rho.lower


def test_a_shift_that_rho_cannot_see_is_warned_of() -> None:
    human = [0.0, 0.25, 0.5] * 30
    result = calibrate(human, [score + 0.25 for score in human])
    assert result.decision == "pass"
    assert result.bias.value == pytest.approx(0.25)
    assert result.mean_absolute_error.value == pytest.approx(0.25)
    assert any("0.25 too high" in warning for warning in result.warnings)


def test_a_bar_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="bar"):
        calibrate([0, 1], [0, 1], bar=math.nan)


def test_strata_show_rho_only_with_enough_labels() -> None:
    human = labels(60, 20, 20) + labels(20, 5, 5)
    judge = noisy(human, 0.2)
    strata = calibrate_strata(human, judge, ["faq"] * 60 + ["numbers"] * 20)
    assert strata["faq"][0].status == "ok"
    assert strata["numbers"][0].reason == "n_too_small" and strata["numbers"][1].value is not None


def test_heterogeneity_finds_a_stratum_the_judge_cannot_grade() -> None:
    human = labels(150, 50, 50) * 2
    judge = noisy(human[:150], 0.1) + noisy(human[150:], 0.9)
    rhos = [rho for rho, _ in calibrate_strata(human, judge, ["a"] * 150 + ["b"] * 150).values()]
    p = heterogeneity(rhos).p
    assert p is not None and p < 1e-6
    assert heterogeneity(rhos[:1]).reason == "fewer_than_two_strata"
