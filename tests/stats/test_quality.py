"""Means, tails, corrected quality, missing grades, drift, probes and multiplicity: known answers and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from eval_pipeline.stats import (
    agreement,
    drift,
    grades,
    means,
    multiplicity,
    probes,
    quality,
    rates,
    recalibration,
    tails,
)
from eval_pipeline.stats.bias import hit_rates
from eval_pipeline.stats.stat import Stat


def test_clusters_widen_the_interval_of_a_mean() -> None:
    scores = np.repeat([1.0, 0.5, 1.0, 0.0, 1.0, 0.75, 1.0, 1.0, 0.25, 1.0, 0.5, 1.0], 5)
    plain = means.mean_interval(scores)
    clustered = means.mean_interval(scores, clusters=np.repeat(np.arange(12), 5).tolist())
    assert clustered.details["n_effective"] == pytest.approx(12, abs=1.5)
    assert clustered.lower is not None and plain.lower is not None and clustered.lower < plain.lower
    assert means.mean_interval(scores, clusters=[0] * 30 + [1] * 30).reason == "few_clusters"
    assert means.mean_interval(scores, clusters=[0] * 60).lower is None


def test_ids_of_cases_without_a_score_do_not_shift_the_clusters() -> None:
    scores, ids = [1.0, None, 0.5, 0.0, 1.0], ["a", "a", "b", "b", "c"]
    with_gap = means.mean_interval(scores, clusters=ids)
    without = means.mean_interval([1.0, 0.5, 0.0, 1.0], clusters=["a", "b", "b", "c"])
    assert (with_gap.lower, with_gap.n, with_gap.n_dropped) == (without.lower, 4, 1)


def test_a_perfect_score_still_has_a_lower_limit_below_one() -> None:
    stat = means.mean_interval([1.0] * 50)
    # Agresti-Coull at 50 of 50: (50 + 1.92) / 53.84 - 1.96 sqrt(.9643 * .0357 / 53.84) = .9148
    assert stat.upper == 1.0 and stat.lower == pytest.approx(0.9148, abs=1e-4)


def test_declared_weights_count_and_a_missing_stratum_is_undefined() -> None:
    scores, strata = [1.0] * 60 + [0.0] * 20, ["faq"] * 60 + ["numbers"] * 20
    stat = means.stratified_mean(scores, strata, {"faq": 0.5, "numbers": 0.5})
    assert (stat.value, stat.details["unweighted_mean"]) == (0.5, 0.75)
    gone = means.stratified_mean(scores, strata, {"faq": 0.5, "numbers": 0.3, "dates": 0.2})
    assert (gone.status, gone.reason, gone.details["stratum"]) == ("undefined", "missing_stratum", "dates")


def test_a_change_hidden_by_pooling_is_noticed() -> None:
    assert means.change_hidden_by_pooling({"a": -0.02, "b": -0.01}, {"a": 0.5, "b": 0.5}, pooled=0.03)
    assert not means.change_hidden_by_pooling({"a": 0.02, "b": -0.01}, {"a": 0.5, "b": 0.5}, pooled=0.03)


def test_small_tails_have_no_limit() -> None:
    assert tails.cvar_lower_limit([0.5, 1.0] * 20).lower is None
    assert tails.cvar_lower_limit([0.5, 1.0] * 30).status == "low_precision"
    assert tails.cvar_lower_limit([0.5, 1.0] * 50).status == "ok"


@pytest.mark.parametrize("n", [35, 36, 100, 2500])
def test_low_quantile_limits_are_those_of_the_quantile_test(n: int) -> None:
    scores = np.random.default_rng(n).random(n)
    expected = scipy_stats.quantile_test(scores, p=0.1).confidence_interval()
    stat = tails.low_quantile(scores)
    assert stat.lower is None if math.isnan(expected.low) else stat.lower == pytest.approx(expected.low)
    assert stat.upper == pytest.approx(expected.high)
    assert ("no lower limit at n = 35" in stat.notes) == (n == 35)


def test_zero_catastrophes_still_leave_an_upper_limit() -> None:
    assert tails.catastrophic_share([1.0] * 149, 0.0).upper == pytest.approx(1 - 0.05 ** (1 / 149))
    assert (rates.clean_cases_needed(0.02), rates.clean_cases_needed(0.01)) == (149, 299)


def test_worst_items_list_the_unknown_first_and_all_ties() -> None:
    worst = tails.worst_items(["a", "b", "c", "d", "e"], [0.5, None, 0.25, 1.0, 0.25], alpha=0.4)
    assert (worst.ids, worst.tied_count) == (("b", "c", "e"), 3)
    assert tails.worst_items(range(100), [0.0] * 100, cap=5).tied_count == 100


def test_clustered_shares_use_the_effective_n() -> None:
    outcomes, ids = [1.0] * 20 + [0.0] * 40, np.repeat(np.arange(12), 5).tolist()
    clustered, plain = rates.clustered_share(outcomes, ids), rates.clopper_pearson(20, 60)
    assert clustered.value == plain.value
    assert clustered.upper is not None and plain.upper is not None and clustered.upper > plain.upper


def test_rogan_gladen_undoes_a_known_judge() -> None:
    # 60% good, Se .9, Sp .8: the judge passes .9 * .6 + .2 * .4 = .62.
    stat = quality.rogan_gladen(620, 1000, 90, 100, 80, 100)
    assert stat.value == pytest.approx(0.6)
    assert stat.lower is not None and stat.upper is not None and stat.lower < 0.6 < stat.upper


def test_estimator_follows_from_where_the_labels_are_from() -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice([0.0, 0.5, 1.0], 1000)
    judge = np.clip(truth + rng.integers(0, 2, 1000) / 4, 0, 1)
    labels = [value if row < 80 else None for row, value in enumerate(truth)]
    own = quality.corrected_quality(judge, labels)
    assert own.estimator == "ppi_mean" and own.corrected is not None and own.human_only is not None
    assert own.corrected.value == pytest.approx(truth.mean(), abs=0.05) and own.raw.value > own.corrected.value + 0.04
    assert own.corrected.upper - own.corrected.lower < own.human_only.upper - own.human_only.lower
    assert quality.corrected_quality(judge, labels, labels_are_random=False).estimator == "uncorrected"
    older = quality.corrected_quality(judge, older_labels=(truth[:200], judge[:200]), cut=0.75)
    assert older.estimator == "rogan_gladen"
    assert quality.corrected_quality(judge, [None] * 1000).estimator == "uncorrected"


def test_a_judge_that_does_not_follow_people_falls_back_to_the_labels() -> None:
    stat = quality.ppi_mean([0, 1, 1] * 20, [1, 0, 1] * 20, [0, 1] * 250)
    assert (stat.reason, stat.details["lam"]) == ("no_gain", 0.0)


def test_weights_correct_labels_sampled_by_judge_score() -> None:
    rng = np.random.default_rng(2)
    truth = rng.choice([0.0, 1.0], 5000, p=[0.2, 0.8])
    judge = np.where(rng.random(5000) < 0.2, 1 - truth, truth)
    chance = np.where(judge == 0, 0.5, 0.1)
    drawn = rng.random(5000) < chance
    stat = quality.ppi_mean(truth[drawn], judge[drawn], judge[~drawn], weights=1 / chance[drawn], lam=0.0)
    assert stat.value == pytest.approx(truth.mean(), abs=0.03)
    assert abs(truth[drawn].mean() - truth.mean()) > 0.1


def test_stratified_ppi_needs_labels_in_every_stratum() -> None:
    filled = quality.Stratum(0.5, [0.0, 0.5, 1.0] * 10, [0.0, 0.5, 1.0] * 10, [0.5] * 50 + [1.0] * 50)
    empty = quality.Stratum(0.5, [], [], [1.0] * 50)
    assert quality.stratified_ppi_mean([filled, filled]).status == "ok"
    assert quality.stratified_ppi_mean([filled, empty]).reason == "missing_stratum"


def test_missing_grades_on_bad_answers_are_noticed() -> None:
    good, bad = [(4, 4)] * 80 + [(4, 2)] * 20, [(0, None)] * 20
    first, second = zip(*(good + bad), strict=True)
    stat = grades.missing_at_random_test(first, second, (0, 2, 4))
    assert stat.p == pytest.approx(1e-4) and stat.value == pytest.approx(-1.0)
    dual = grades.combine_dual(first, second, (0, 2, 4))
    assert (dual.missing_second, dual.missing_first) == (20, 0)
    assert grades.missing_at_random_test([4], [4], (0, 2, 4)).reason == "n_zero"


def test_all_invalid_is_undefined_with_open_bounds() -> None:
    mean = grades.combine_dual([None, "x"], [7, True], (0, 2, 4)).mean()
    assert (mean.value, mean.status, mean.reason, mean.lower, mean.upper) == (
        None,
        "undefined",
        "all_invalid",
        0.0,
        1.0,
    )
    assert mean.details["bounds"] == [0.0, 1.0]


def test_invalid_grades_in_one_stratum_are_noticed() -> None:
    assert (grades.invalid_by_group([12, 0], [60, 60]).p or 1) < 0.001
    assert (grades.invalid_by_group([12, 0, 1], [60, 60, 60]).p or 1) < 0.001
    assert grades.invalid_by_group([0, 0], [60, 60]).reason == "no_variation"


def test_dual_agreement_reads_the_three_numbers_together() -> None:
    block = agreement.dual_agreement([2] * 92 + [0, 1] * 4, [2] * 92 + [1, 0] * 4, levels=(0, 1, 2))
    assert block.exact.value == 0.92 and block.warnings
    swapped = agreement.dual_agreement([2] * 30, [0] * 30, levels=(0, 1, 2))
    assert swapped.order_shift.value == pytest.approx(-1.0) and (swapped.order_swap.p or 1) < 1e-6
    constant = agreement.dual_agreement([2] * 30, [2] * 30, levels=(0, 1, 2))
    assert (constant.exact.value, constant.kappa.reason, constant.ac2.reason) == (1.0, "no_variation", "no_variation")


def test_psi_is_read_against_its_null_not_against_folklore() -> None:
    # chi2(.95, 4) * 2/50 = .38: a PSI of .2 at n = m = 50 over 5 bins is no shift.
    stat = drift.population_stability([10] * 5, [14, 12, 10, 8, 6])
    assert stat.details["null_limit"] == pytest.approx(0.38, abs=0.005) and not stat.details["is_shifted"]
    assert drift.population_stability([5000, 5000], [4000, 6000]).details["is_shifted"]
    assert drift.population_stability([5, 0], [3, 2], smoothing=0).reason == "empty_bin"
    assert drift.population_stability([0, 0], [3, 2]).reason == "n_zero"


def test_a_moved_judge_is_told_from_a_noisy_one() -> None:
    rng = np.random.default_rng(3)
    frozen = rng.choice([0.5, 0.75, 1.0], 200)
    noise = np.where(rng.random(200) < 0.05, rng.choice([0.5, 0.75, 1.0], 200), frozen)
    assert not drift.canary(frozen, noise, flip_share=0.05).details["is_moved"]
    assert drift.canary(frozen, frozen - 0.25, flip_share=0.05).details["is_moved"]
    assert drift.canary(frozen[:40], noise[:40]).reason == "n_too_small"


def test_an_item_that_good_systems_fail_is_found() -> None:
    rng = np.random.default_rng(4)
    ability = np.linspace(0, 1, 10)
    table = (rng.random((10, 30)) < ability[:, None]).astype(float)
    table[:, 0] = 1 - np.round(ability)
    table[:, 1] = 1.0
    items = drift.item_discrimination(table)
    rest = np.delete(table, 0, axis=1).mean(axis=1)
    assert items[0].value == pytest.approx(np.corrcoef(table[:, 0], rest)[0, 1])
    assert items[0].value < 0 and items[1].reason == "constant_input"
    assert drift.item_discrimination(table[:7])[0].reason == "n_too_small"


def test_dead_items_and_saturation() -> None:
    runs = np.array([[1, 1, 0.5, 0], [1, 1, 1, 0], [1, 1, 0, 0]])
    dead = drift.dead_items(["a", "b", "c", "d"], list(runs), ["s1", "s2", "s3"])
    assert (dead.item_ids, dead.share.value, dead.live_count, dead.all_perfect_share) == (("a", "b", "d"), 0.75, 1, 0.5)
    assert dead.is_rotten
    assert drift.dead_items(["a"], [[1], [1]], ["s1", "s1"]).share.reason == "fewer_than_three_systems"
    assert drift.saturation(0.97, 0.02).details["is_saturated"]


def test_length_probe_gives_a_slope_per_doubling() -> None:
    rng = np.random.default_rng(5)
    length, human = 2 ** rng.uniform(5, 9, 300), rng.random(300) * 0.5
    score = human + 0.05 * (np.log2(length) - 7) + rng.normal(0, 0.02, 300)
    _, slope = probes.length_probe(score, length, human, resamples=99)
    assert slope.value == pytest.approx(0.05, abs=0.005)
    assert probes.length_probe(score[:29], length[:29], human[:29])[0].reason == "n_too_small"


def test_position_probe_counts_a_flip_as_a_tie() -> None:
    probe = probes.position_probe(["first"] * 20 + ["first"] * 10, ["first"] * 20 + ["second"] * 10)
    assert probe.consistency.value == pytest.approx(1 / 3)
    assert probe.first_wins.value == pytest.approx(50 / 60)
    assert probe.first_wins.p == pytest.approx(2 * 0.5**20)


def test_self_preference_removes_true_quality() -> None:
    rng = np.random.default_rng(6)
    own, other = rng.random(60) * 0.5 + 0.3, rng.random(60) * 0.5
    test, size = probes.self_preference(own + 0.1, own, other, other)
    assert size.value == pytest.approx(0.1) and (test.p or 1) < 0.001
    assert probes.self_preference(own, own, other, other)[1].value == 0
    assert probes.self_preference(own[:9], own[:9], own[:9], own[:9])[0].reason == "n_too_small"


def test_isotonic_flags_data_that_fall_and_merges_thin_levels() -> None:
    falling = recalibration.isotonic([0, 0.5, 1] * 20, [1, 0.5, 0] * 20)
    assert (falling.reason, set(falling.fitted)) == ("decreasing_data", {0.5})
    thin = recalibration.isotonic([0] * 10 + [0.5] * 2 + [1] * 10, [0] * 10 + [1] * 2 + [1] * 10, minimum_per_level=10)
    assert thin.fitted[0] == 0.0 and thin.fitted[1] == thin.fitted[2] == 1.0
    assert recalibration.isotonic([], []).reason == "n_zero"


def test_cross_fitted_values_never_see_their_own_fold() -> None:
    rng = np.random.default_rng(7)
    judge = rng.integers(0, 5, 400) / 4
    human = np.clip(judge - 0.2 + rng.normal(0, 0.1, 400), 0, 1)
    fitted = recalibration.cross_fitted(judge, human, clusters=np.repeat(np.arange(200), 2).tolist())
    assert abs(float((fitted - human).mean())) < 0.01 < float((judge - human).mean())


def test_brier_and_calibration_error_by_hand() -> None:
    # (.25 + .25 + 0 + 0) / 4; level .5 has outcomes 1, 0: its gap is 0, level 1 has 1, 1.
    assert recalibration.brier_score([0.5, 0.5, 1, 1], [1, 0, 1, 1]).value == 0.125
    assert recalibration.expected_calibration_error([0.5, 0.5, 1, 1], [1, 0, 1, 0]).value == 0.25


def test_hit_rates_state_the_class_without_labels() -> None:
    found = hit_rates([1, 1, 0, 0], [1, 0, 0, 1], cut=0.5)
    assert (found.true_positive_rate.value, found.true_negative_rate.value) == (0.5, 0.5)
    assert hit_rates([1, 1], [1, 0], cut=0.5).true_negative_rate.reason == "single_class_labels"


def candidate(name: str, z: float, cost: float, blocked: str | None = None) -> multiplicity.JudgeCandidate:
    rho = Stat(
        name="rho", value=math.tanh(z), n=100, lower=math.tanh(z - 0.16), upper=math.tanh(z + 0.16),
        details={"z": z, "se_z": 0.1, "df": 99},
    )  # fmt: skip
    return multiplicity.JudgeCandidate(name, rho, cost, blocked)


def test_the_cheapest_judge_pays_for_having_been_selected() -> None:
    bar = math.atanh(0.7)
    # One judge 1.8 standard errors above the bar passes alone (p .037), not among four (.15).
    alone = multiplicity.cheapest_judge([candidate("a", bar + 0.18, 1)])
    among = multiplicity.cheapest_judge([candidate(name, bar + 0.18, 1) for name in "abcd"])
    assert alone.name == "a" and among.name is None and among.nearest is not None


def test_blocked_judges_are_not_picked_and_near_prices_go_to_the_surer_one() -> None:
    bar = math.atanh(0.7)
    pool = [
        candidate("biased", bar + 0.9, 0.1, "bias"), candidate("sure", bar + 0.8, 1.04),
        candidate("cheap", bar + 0.5, 1.0),
    ]  # fmt: skip
    assert multiplicity.cheapest_judge(pool).name == "sure"
    assert multiplicity.cheapest_judge([]).name is None


def test_a_panel_of_judges_that_err_alike_is_hardly_a_panel() -> None:
    rng = np.random.default_rng(8)
    shared = rng.normal(size=200)
    alike = multiplicity.panel_size([shared + 0.1 * rng.normal(size=200) for _ in range(3)])
    apart = multiplicity.panel_size([rng.normal(size=200) for _ in range(3)])
    assert alike.value == pytest.approx(1.0, abs=0.05) and alike.notes
    assert apart.value == pytest.approx(3.0, abs=0.5)


def test_scores_outside_the_scale_are_refused() -> None:
    with pytest.raises(ValueError, match="0, 1"):
        means.mean_interval([4, 2, 0])
    with pytest.raises(TypeError):
        means.mean_interval(["0.5", "NA"])
