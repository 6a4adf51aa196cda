"""Rank correlations against scipy, and leave-one-out values against leaving one out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from eval_pipeline.stats import concordance, correlation, partial_correlation
from eval_pipeline.stats.ceilings import (
    ceiling_by_human_noise,
    ceiling_by_marginals,
    labels_for_power,
    labels_needed,
)
from eval_pipeline.stats.counts import PairTable
from eval_pipeline.stats.stat import Stat

LEAVE_ONE_OUT = [
    (correlation.spearman_leave_one_out, scipy_stats.spearmanr),
    (correlation.kendall_leave_one_out, scipy_stats.kendalltau),
]


@pytest.mark.parametrize("on_grid", [True, False])
@pytest.mark.parametrize("dense_cells", [4_000_000, 0], ids=["dense", "sparse"])
@pytest.mark.parametrize(("leave_one_out", "oracle"), LEAVE_ONE_OUT)
def test_each_leave_one_out_value_is_that_of_the_other_rows(
    monkeypatch: pytest.MonkeyPatch, on_grid: bool, dense_cells: int, leave_one_out: object, oracle: object
) -> None:
    monkeypatch.setattr(concordance, "DENSE_CELLS", dense_cells)
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, 60) / 4 if on_grid else rng.normal(size=60)
    y = np.round(4 * x + rng.normal(size=60)) / 4 if on_grid else x + rng.normal(size=60)
    table = PairTable.from_rows(x, y)
    expected = [oracle(np.delete(x, row), np.delete(y, row)).statistic for row in range(60)]  # type: ignore[operator]
    assert leave_one_out(table)[table.cell_of_row] == pytest.approx(expected, abs=1e-12)  # type: ignore[operator]


def test_jackknife_limits_follow_from_the_leave_one_out_values() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, 80) / 2
    y = np.clip(x + rng.integers(-1, 2, 80) / 4, 0, 1)
    z = np.arctanh([scipy_stats.spearmanr(np.delete(x, row), np.delete(y, row)).statistic for row in range(80)])
    se = math.sqrt(79 / 80 * ((z - z.mean()) ** 2).sum())
    rho = scipy_stats.spearmanr(x, y).statistic
    lower = math.tanh(math.atanh(rho) - scipy_stats.t.ppf(0.95, 79) * se)
    assert correlation.spearman(x, y, sided="one").lower == pytest.approx(lower, abs=1e-12)


def test_clusters_of_one_row_are_the_plain_jackknife_and_larger_ones_widen_it() -> None:
    rng = np.random.default_rng(6)
    base = rng.integers(0, 3, 40) / 2
    x = np.repeat(base, 3)
    y = np.repeat(np.clip(base + rng.integers(-1, 2, 40) / 4, 0, 1), 3)
    plain = correlation.spearman(x, y)
    assert correlation.spearman(x, y, clusters=list(range(120))).lower == pytest.approx(plain.lower, abs=1e-12)
    clustered = correlation.spearman(x, y, clusters=np.repeat(np.arange(40), 3).tolist())
    assert clustered.lower is not None and plain.lower is not None and clustered.lower < plain.lower


def test_perfect_association_falls_back_to_a_finite_limit() -> None:
    # 50 perfect pairs, 15/20/65: one adversarial pair lowers rho to .94, whose Bonett-Wright lower limit is .90.
    labels = [0.0] * 8 + [0.5] * 10 + [1.0] * 32
    stat = correlation.spearman(labels, labels, sided="one")
    assert (stat.value, stat.status, stat.reason) == (1.0, "fallback", "perfect_association")
    assert stat.details["centre"] == pytest.approx(0.943, abs=0.001)
    assert stat.lower == pytest.approx(0.901, abs=0.001)


def test_one_pair_that_carries_all_variation_gives_no_interval() -> None:
    stat = correlation.spearman([0.0] + [1.0] * 30, [0.0] + [1.0] * 15 + [0.5] * 15)
    assert (stat.status, stat.reason, stat.lower) == ("low_precision", "one_unit_carries_all_variation", None)


@pytest.mark.parametrize(("x", "reason"), [([1, 1, 1, 1], "constant_input"), ([None, None, 1, 0], "n_too_small")])
def test_no_rank_correlation_of_a_constant_or_of_two_pairs(x: list[float | None], reason: str) -> None:
    for function in (correlation.spearman, correlation.kendall_tau_b):
        assert function(x, [0, 1, 0, 1]).reason == reason


def test_weighted_rho_is_that_of_the_replicated_rows() -> None:
    x, y, times = [0, 0.5, 1, 1, 0, 0.5], [0.25, 0.5, 1, 0.5, 0, 1], [1, 3, 2, 5, 4, 1]
    replicated = scipy_stats.spearmanr(np.repeat(x, times), np.repeat(y, times)).statistic
    assert correlation.spearman_weighted(x, y, times).value == pytest.approx(replicated, abs=1e-12)


def test_difference_of_two_judges_deletes_the_same_case_from_both() -> None:
    rng = np.random.default_rng(8)
    human = rng.integers(0, 3, 50) / 2
    old, new = (np.clip(human + rng.integers(-k, k + 1, 50) / 4, 0, 1) for k in (2, 1))
    z = np.array([
        math.atanh(scipy_stats.spearmanr(np.delete(human, row), np.delete(new, row)).statistic)
        - math.atanh(scipy_stats.spearmanr(np.delete(human, row), np.delete(old, row)).statistic)
        for row in range(50)
    ])  # fmt: skip
    stat = correlation.spearman_difference(human, old, new)
    assert stat.details["se_z"] == pytest.approx(math.sqrt(49 / 50 * ((z - z.mean()) ** 2).sum()), abs=1e-12)


def test_a_lenient_judge_has_a_ceiling() -> None:
    human = [0.0] * 150 + [0.5] * 200 + [1.0] * 650
    lenient = [0.0] * 80 + [0.5] * 120 + [1.0] * 800
    expected = scipy_stats.spearmanr(sorted(human), sorted(lenient)).statistic
    shuffled = np.random.default_rng(0).permutation(lenient)
    assert ceiling_by_marginals(human, shuffled).value == pytest.approx(expected, abs=1e-12)
    assert 0.75 < expected < 0.80


def test_human_noise_caps_rho_at_the_root_of_the_reliability() -> None:
    kappa = Stat(name="quadratic_weighted_kappa", value=0.81, n=40)
    assert ceiling_by_human_noise(kappa).value == pytest.approx(0.9)
    assert ceiling_by_human_noise(Stat(name="k", value=0.81, n=29)).reason == "n_too_small"


def test_labels_needed_for_a_balanced_study() -> None:
    assert [labels_for_power(rho) for rho in (0.75, 0.80, 0.85, 0.90)] == [703, 152, 57, 26]


def test_labels_needed_grow_as_the_point_nears_the_bar() -> None:
    def at(z: float) -> int | None:
        stat = Stat(name="rho", value=math.tanh(z), n=60, details={"z": z, "se_z": 0.15, "df": 59})
        return labels_needed(stat, 0.7)

    near, far = at(math.atanh(0.7) + 0.05), at(math.atanh(0.7) + 0.2)
    # 60 (1.671 * .15 / .05)^2 = 1507.8 and 60 (1.671 * .15 / .2)^2 = 94.2
    assert (near, far) == (1508, 95)
    assert at(math.atanh(0.7)) is None


def test_partial_correlation_finds_a_judge_that_likes_length() -> None:
    rng = np.random.default_rng(2)
    human, length = rng.integers(0, 3, 150) / 2, rng.integers(20, 400, 150)
    fair = np.clip(human + rng.integers(-1, 2, 150) / 4, 0, 1)
    fond = np.clip(human * 0.5 + length / 800 + rng.normal(size=150) / 20, 0, 1)
    assert partial_correlation.partial_spearman(fond, length, human, resamples=999).p == pytest.approx(0.001)
    unrelated = partial_correlation.partial_spearman(fair, length, human, resamples=999)
    assert unrelated.p is not None and unrelated.p > 0.05
    assert unrelated.details["seed"] == 0 and unrelated.details["bit_generator"] == "PCG64"
