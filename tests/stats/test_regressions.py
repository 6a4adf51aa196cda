"""Paired tests and the regression rule: exact distributions by enumeration, and what is or is not a regression."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats

from eval_pipeline.stats import paired, permutation, tails
from eval_pipeline.stats.regression_rule import against_pin, against_window, run_prediction_limit


@pytest.mark.parametrize("alternative", ["less", "greater"])
@pytest.mark.parametrize(("n", "runs"), [(6, 1), (5, 2), (4, 3)])
def test_relabelling_is_the_enumeration_of_all_relabellings(n: int, runs: int, alternative: str) -> None:
    rng = np.random.default_rng(n)
    window, new = rng.integers(0, 5, (runs, n)) / 4, rng.integers(0, 5, n) / 4
    sums = [sum(choice) for choice in itertools.product(*np.vstack([new, window]).T)]
    expected = np.mean([s <= new.sum() if alternative == "less" else s >= new.sum() for s in sums])
    found = permutation.relabelling(list(window), new, alternative=alternative)  # type: ignore[arg-type]
    assert found.p == pytest.approx(expected, abs=1e-12)


def test_relabelling_uses_the_runs_each_case_has() -> None:
    # Case 1 has scores {1, 0}, case 2 {0, 1, 1}; new = (1, 0). P(sum <= 1) = 1 - P(1 and 1) = 1 - 1/2 * 2/3.
    stat = permutation.relabelling([[0, 1], [None, 1]], [1, 0])
    assert stat.p == pytest.approx(2 / 3)


def test_sign_flip_of_off_grid_scores_is_enumerated_then_sampled() -> None:
    rng = np.random.default_rng(1)
    old = rng.random(12)
    new = old + rng.normal(-0.02, 0.05, 12)
    expected = scipy_stats.permutation_test((new - old,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert permutation.sign_flip(old, new).p == pytest.approx(expected.pvalue, abs=1e-12)
    many = np.tile(old, 5), np.tile(new, 5) + rng.normal(0, 1e-3, 60)
    sampled = permutation.sign_flip(*many)
    assert sampled.method == "monte_carlo_sign_flip" and sampled.details["resamples"] == 9999
    assert sampled.p == permutation.sign_flip(*many).p


def test_clusters_flip_as_a_whole() -> None:
    # Two clusters, both down by 1: of the 4 sign patterns one is as low. Row by row it would be 1 of 16.
    stat = permutation.sign_flip([1, 1, 1, 1], [0.5] * 4, alternative="less", clusters=["a", "a", "b", "b"])
    assert stat.p == pytest.approx(1 / 4)


def test_no_case_changed_is_p_one_with_an_open_interval() -> None:
    same = [1.0, 0.5] * 20
    assert permutation.sign_flip(same, same).p == 1.0
    size = paired.paired_difference(same, same)
    assert size.value == 0 and size.lower is not None and size.lower < 0 < (size.upper or 0)
    assert size.notes == ("no case changed",)


def test_identical_runs_are_not_equivalent_by_their_silence() -> None:
    small, large = [0.5] * 10, [0.5] * 2000
    assert not paired.equivalence(small, small, 0.03).details["is_equivalent"]
    assert paired.equivalence(large, large, 0.03).details["is_equivalent"]
    assert paired.equivalence_t(small, small, 0.03).reason == "zero_variance"


def test_what_a_set_can_detect() -> None:
    # 2.487 * .26 / 10 = .0647
    assert paired.minimum_detectable_effect(0.26, 100) == pytest.approx(0.06465, abs=1e-5)
    assert paired.cases_to_detect(0.26, 0.03) == pytest.approx(6.18 * 0.26**2 / 0.03**2, abs=2)


def test_noise_floor_separates_the_judge_from_the_cases() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(4000)
    floor = paired.noise_floor([truth + rng.normal(0, 0.1, 4000) for _ in range(3)])
    assert floor.details["var_judge"] == pytest.approx(0.01, rel=0.05)
    assert floor.details["var_case"] == pytest.approx(1 / 12, rel=0.05)
    assert floor.value == pytest.approx(np.sqrt(2 * 0.01 / 4000), rel=0.05)
    assert paired.noise_floor([[0, 1] * 60, [0, 1] * 60]).value == 0.0
    assert paired.noise_floor([[0.5, 0.5] * 60, [0.5, 0.5] * 60]).details["icc1"] is None


def runs(rng: np.random.Generator, quality: np.ndarray, count: int, flaky: float) -> list[np.ndarray]:
    return [
        np.where(rng.random(len(quality)) < flaky, rng.integers(0, 5, len(quality)) / 4, quality) for _ in range(count)
    ]


def test_an_honest_regression_is_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(4)
    quality = rng.choice([0.5, 0.75, 1.0], 300)
    window, fine, broken = runs(rng, quality, 7, 0.05), *runs(rng, quality, 2, 0.05)
    broken[:40] = 0.0
    assert against_window(window, broken).verdict == "regression"
    assert against_window(window, fine).verdict == "no_regression"


def test_a_significant_drop_within_run_noise_is_no_regression() -> None:
    rng = np.random.default_rng(5)
    quality = rng.choice([0.5, 0.75, 1.0], 300)
    shifts = (-0.25, 0, 0, -0.25, 0, -0.25, 0)
    window = [np.clip(run + shift, 0, 1) for run, shift in zip(runs(rng, quality, 7, 0.02), shifts, strict=True)]
    low = np.clip(quality - 0.25, 0, 1)
    result = against_window(window, low)
    assert result.test.p is not None and result.test.p < 0.001
    assert result.verdict == "no_regression" and "run-to-run noise" in result.reason


def test_a_tiny_drop_is_no_regression_however_sure() -> None:
    old = np.ones(10_000)
    new = old.copy()
    new[:50] = 0.0  # a drop of .005
    result = against_window([old] * 7, new)
    assert result.verdict == "no_regression" and "minimum effect" in result.reason


def test_few_runs_ask_for_a_confirmation_and_nothing_is_never_a_pass() -> None:
    old, new = np.ones(100), np.r_[np.zeros(20), np.ones(80)]
    assert against_window([old] * 4, new).verdict == "needs_confirmation"
    assert against_window([old] * 5, new).verdict == "regression"
    assert against_window([], new).verdict == "undefined"
    assert against_window([[None] * 100] * 7, new).verdict == "undefined"
    assert against_pin(old, new).verdict == "needs_confirmation"
    limit = run_prediction_limit([0.99, 1.0, 0.98, 1.0, 0.99, 1.0, 0.99])
    assert against_pin(old, new, limit=limit).verdict == "regression"


def test_the_noise_floor_holds_the_prediction_limit_down() -> None:
    same = [0.9] * 7
    assert run_prediction_limit(same).lower == pytest.approx(0.9)
    # t(6, .95) = 1.943; .9 - 1.943 * .02 * sqrt(8/7) = .8585
    assert run_prediction_limit(same, noise_floor=0.02).lower == pytest.approx(0.8585, abs=1e-4)


def test_a_tail_collapse_with_an_unchanged_mean_is_seen_in_the_tail() -> None:
    old = np.full(200, 0.75)
    new = np.r_[np.zeros(20), np.full(60, 1.0), np.full(120, 0.75)]
    assert new.mean() == old.mean()
    change = tails.cvar_change(old, new)
    assert change.value == pytest.approx(-0.75) and change.upper is not None and change.upper < 0


def test_p_values_at_a_million_cases_come_from_the_same_exact_distribution() -> None:
    rng = np.random.default_rng(9)
    steps = rng.choice([-0.5, -0.25, 0.25, 0.5], 1_000_000)
    total = float(steps.sum())
    normal = scipy_stats.norm.cdf(total / np.sqrt((steps**2).sum()))
    assert permutation.sign_flip(np.zeros(1_000_000), steps, alternative="less").p == pytest.approx(normal, abs=2e-3)
