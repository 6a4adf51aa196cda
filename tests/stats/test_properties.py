"""Laws that hold for any data."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eval_pipeline.stats import (
    agreement,
    correlation,
    grades,
    means,
    multiplicity,
    paired,
    partial_correlation,
    permutation,
    quality,
    tails,
)
from eval_pipeline.stats.calibration_rule import calibrate
from eval_pipeline.stats.counts import Counts, PairTable, as_counts
from eval_pipeline.stats.stat import Stat

GRADES = (0, 2, 4)
QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
ANY_SCORE = st.one_of(QUARTERS, st.floats(0, 1, allow_nan=False, width=32))
MAYBE = st.one_of(st.none(), QUARTERS)
GRADE = st.one_of(st.none(), st.sampled_from(GRADES), st.sampled_from([3, -1, True, "4 ", math.nan, math.inf, 5]))


def pairs(score: st.SearchStrategy[float | None], low: int = 1, high: int = 40) -> st.SearchStrategy[list[tuple]]:
    return st.lists(st.tuples(score, score), min_size=low, max_size=high)


def columns(rows: Sequence[tuple]) -> list[list]:
    return [list(column) for column in zip(*rows, strict=True)]


@given(st.lists(st.tuples(GRADE, GRADE), min_size=1, max_size=30))
def test_width_of_the_bounds_is_the_missing_grade_share(rows: list[tuple]) -> None:
    dual = grades.combine_dual(*columns(rows), GRADES)
    assert dual.upper.mean() - dual.lower.mean() == pytest.approx(dual.missing_grade_share)
    triples = zip(dual.lower, dual.scores, dual.upper, strict=True)
    assert all(low <= value <= high for low, value, high in triples if value is not None)


@given(st.lists(st.tuples(GRADE, GRADE), min_size=1, max_size=30))
def test_losing_a_grade_never_raises_the_lower_bound(rows: list[tuple]) -> None:
    before = grades.combine_dual(*columns(rows), GRADES).lower.mean()
    after = grades.combine_dual(*columns([(None, rows[0][1]), *rows[1:]]), GRADES).lower.mean()
    assert after <= before + 1e-12


@given(st.lists(st.tuples(GRADE, GRADE), min_size=1, max_size=30))
def test_an_additional_invalid_case_never_raises_the_lower_bound(rows: list[tuple]) -> None:
    before = grades.combine_dual(*columns(rows), GRADES)
    after = grades.combine_dual(*columns([*rows, (None, None)]), GRADES)
    assert after.lower.mean() <= before.lower.mean() + 1e-12
    low, more = (grades.mean_bounds(dual.lower, dual.upper) for dual in (before, after))
    assert more.value is not None and low.value is not None and more.value <= low.value + 1e-12


@given(st.lists(ANY_SCORE, min_size=1, max_size=60))
def test_rows_and_counts_give_the_same_mean_tail_and_limits(scores: list[float]) -> None:
    values, counts = np.unique(scores, return_counts=True)
    table = Counts(values, counts.astype(float))
    for function in (means.mean_interval, tails.cvar, tails.cvar_lower_limit, tails.low_quantile):
        rows, counted = function(scores), function(table)
        for field in ("value", "lower", "upper"):
            assert getattr(rows, field) == pytest.approx(getattr(counted, field), abs=1e-9)


@given(pairs(QUARTERS, 4), st.randoms())
def test_rows_and_table_agree_and_row_order_changes_nothing(rows: list[tuple], random: object) -> None:
    x, y = columns(rows)
    table = np.zeros((5, 5))
    for a, b in rows:
        table[round(a * 4), round(b * 4)] += 1
    counted = PairTable.from_counts([0, 0.25, 0.5, 0.75, 1], [0, 0.25, 0.5, 0.75, 1], table)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for function in (
        correlation.spearman, correlation.kendall_tau_b, agreement.quadratic_weighted_kappa, agreement.exact_agreement,
        paired.paired_difference, permutation.sign_flip,
    ):  # fmt: skip
        from_rows, from_table, from_shuffled = function(x, y), function(counted), function(*columns(shuffled))
        assert from_rows.status == from_table.status == from_shuffled.status
        for field in ("value", "lower", "upper", "p"):
            assert getattr(from_rows, field) == pytest.approx(getattr(from_table, field), abs=1e-7)
            assert getattr(from_rows, field) == pytest.approx(getattr(from_shuffled, field), abs=1e-7)


@given(pairs(ANY_SCORE, 3))
def test_quadratic_weighted_kappa_is_lins_concordance(rows: list[tuple]) -> None:
    x, y = (np.array(column) for column in columns(rows))
    spread = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    assume(spread > 1e-6)
    lin = 2 * ((x - x.mean()) * (y - y.mean())).mean() / spread
    assert agreement.quadratic_weighted_kappa(x, y).value == pytest.approx(lin, abs=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=40), st.data())
def test_sign_flip_of_equal_steps_is_mcnemar(old: list[float], data: st.DataObject) -> None:
    new = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(old), max_size=len(old)))
    worse = sum(a > b for a, b in zip(old, new, strict=True))
    better = sum(a < b for a, b in zip(old, new, strict=True))
    assert permutation.sign_flip(old, new).p == pytest.approx(paired.mcnemar(worse, better).p, abs=1e-12)


@given(pairs(QUARTERS))
def test_relabelling_against_one_run_is_the_sign_flip(rows: list[tuple]) -> None:
    old, new = columns(rows)
    for alternative in ("less", "greater", "two-sided"):
        window = permutation.relabelling([old], new, alternative=alternative)
        flip = permutation.sign_flip(old, new, alternative=alternative)
        assert window.p == pytest.approx(flip.p, abs=1e-11)
        assert window.value == pytest.approx(flip.value, abs=1e-12)


@given(pairs(QUARTERS))
def test_swapping_the_runs_mirrors_the_p_value(rows: list[tuple]) -> None:
    old, new = columns(rows)
    assert permutation.sign_flip(old, new, alternative="less").p == pytest.approx(
        permutation.sign_flip(new, old, alternative="greater").p, abs=1e-12
    )


@given(st.lists(ANY_SCORE, min_size=1, max_size=60), st.floats(0.01, 1))
def test_cvar_of_everything_is_the_mean_and_no_tail_exceeds_it(scores: list[float], alpha: float) -> None:
    mean = float(np.mean(scores))
    assert tails.cvar(scores, 1.0).value == pytest.approx(mean, abs=1e-9)
    tail = tails.cvar(scores, alpha).value
    assert tail is not None and min(scores) - 1e-9 <= tail <= mean + 1e-9


@given(st.lists(ANY_SCORE, min_size=1, max_size=60), st.data())
def test_cvar_never_falls_when_a_score_rises(scores: list[float], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(scores) - 1))
    better = list(scores)
    better[position] = data.draw(st.floats(scores[position], 1))
    before, after = tails.cvar(scores).value, tails.cvar(better).value
    assert before is not None and after is not None and after >= before - 1e-9


@given(st.lists(st.tuples(ANY_SCORE, ANY_SCORE), min_size=3, max_size=40), st.lists(ANY_SCORE, min_size=1, max_size=40))
def test_ppi_without_power_is_the_human_mean(labelled: list[tuple], unlabelled: list[float]) -> None:
    y, f = columns(labelled)
    assert quality.ppi_mean(y, f, unlabelled, lam=0.0).value == pytest.approx(float(np.mean(y)), abs=1e-12)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_holm_is_at_least_the_raw_p_and_keeps_its_order(p_values: list[float | None]) -> None:
    adjusted = multiplicity.holm(p_values)
    known = sorted((p, q) for p, q in zip(p_values, adjusted, strict=True) if p is not None and q is not None)
    assert all(q >= p and q <= 1 for p, q in known)
    assert all(first[1] <= second[1] for first, second in itertools.pairwise(known))
    assert [p is None for p in p_values] == [q is None for q in adjusted]


@settings(max_examples=60)
@given(pairs(MAYBE, 0, 30))
def test_no_statistic_ever_serialises_an_undefined_number(rows: list[tuple]) -> None:
    x, y = columns(rows) if rows else ([], [])
    stats: list[Stat] = [
        means.mean_interval(x), tails.cvar(x), tails.cvar_lower_limit(x), tails.low_quantile(x),
        tails.cvar_change(x, y, resamples=50),
        tails.catastrophic_share(x, 0.25), correlation.spearman(x, y), correlation.kendall_tau_b(x, y),
        correlation.spearman_bonett_wright(x, y), agreement.quadratic_weighted_kappa(x, y), agreement.gwet_ac2(x, y),
        agreement.exact_agreement(x, y), agreement.krippendorff_alpha_ordinal([x, y]), paired.paired_difference(x, y),
        paired.equivalence(x, y), paired.equivalence_t(x, y), paired.noise_floor([x, y]), permutation.sign_flip(x, y),
        permutation.relabelling([x, y], y), quality.ppi_mean(x, y, y),
        partial_correlation.partial_spearman(x, y, x, resamples=20),
        correlation.spearman_difference(x, y, x), calibrate(x, y).bias,
    ]  # fmt: skip
    for stat in stats:
        text = json.dumps(stat.to_dict(), allow_nan=False)
        assert ('"value": null' in text) == (stat.status == "undefined")
        assert stat.reason or stat.status == "ok"
        if stat.value is not None and stat.lower is not None and stat.upper is not None:
            assert stat.lower - 1e-9 <= stat.value <= stat.upper + 1e-9


@given(st.lists(MAYBE, max_size=40))
def test_every_dropped_row_is_counted(scores: list[float | None]) -> None:
    sample = as_counts(scores)
    assert sample.n + sample.n_dropped == len(scores)
    assert sample.n_dropped == sum(score is None for score in scores)
