"""Probes of known judge biases: length, verbosity, position, own family. Alerts, outside the gate's family of tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .counts import Numbers, complete
from .paired import paired_difference
from .partial_correlation import partial_spearman
from .permutation import sign_flip
from .quantiles import binomial_cdf, t_cdf, t_quantile
from .rates import wilson
from .stat import Stat, undefined

Choice = Literal["first", "second", "tie"]
MINIMUM_PROBE = 30


def length_probe(
    score: Numbers, length: Numbers, human: Numbers, *, seed: int = 0, resamples: int = 9999
) -> tuple[Stat, Stat]:
    """Whether the judge rewards length beyond what people do.

    Returns:
        The partial rank correlation of score and length given human (undefined under 30 rows), and the slope of
        judge - human per doubling of length with its heteroscedasticity-robust (HC3) interval.
    """
    (s, le, h), dropped = complete(score, length, human)
    n = len(s)
    if n < MINIMUM_PROBE:
        return (
            undefined("partial_spearman", "n_too_small", n=n, n_dropped=dropped),
            undefined("bias_per_doubling", "n_too_small", n=n, n_dropped=dropped),
        )
    return partial_spearman(s, le, h, seed=seed, resamples=resamples), _slope(s - h, le, dropped)


def _slope(error: np.ndarray, length: np.ndarray, dropped: int, level: float = 0.95) -> Stat:
    name, n = "bias_per_doubling", len(error)
    doublings = np.log2(np.maximum(length, 1.0))
    x = doublings - doublings.mean()
    sxx = float(x @ x)
    if sxx < 1e-12:
        return undefined(name, "constant_input", n=n, n_dropped=dropped)
    slope = float(x @ error) / sxx
    residual = error - error.mean() - slope * x
    leverage = 1 / n + x**2 / sxx
    se = math.sqrt(float((x**2) @ (residual / np.maximum(1 - leverage, 1e-6)) ** 2)) / sxx
    half = t_quantile((1 + level) / 2, n - 2) * se
    p = 2 * t_cdf(-abs(slope) / se, n - 2) if se > 0 else 1.0
    return Stat(
        name=name, value=slope, n=n, n_dropped=dropped, lower=slope - half, upper=slope + half, level=level,
        sided="two", p=p, method="ols_hc3", estimand="population", details={"se": se},
    )  # fmt: skip


def verbosity_probe(plain: Numbers, padded: Numbers) -> tuple[Stat, Stat]:
    """Scores of the same answers with and without padding: the sign-flip test and the size. The only causal probe."""
    return sign_flip(plain, padded, name="verbosity"), paired_difference(plain, padded, name="verbosity_shift")


@dataclass(frozen=True, slots=True)
class PositionProbe:
    """Consistency over both orders, and the share of decisive verdicts that went to what was shown first."""

    consistency: Stat
    first_wins: Stat


def position_probe(shown_first: Sequence[Choice], swapped: Sequence[Choice]) -> PositionProbe:
    """Pairwise verdicts on the same pairs in both orders.

    Args:
        shown_first: What won when A was shown first: `first` (A), `second` (B) or `tie`.
        swapped: What won when B was shown first: `first` (B), `second` (A) or `tie`.

    A flip counts as a tie. The p value of `first_wins` is McNemar's on the flips, because the two orders share a pair.
    """
    if len(shown_first) != len(swapped):
        raise ValueError(f"{len(shown_first)} verdicts but {len(swapped)} swapped ones.")
    opposite = {"first": "second", "second": "first", "tie": "tie"}
    consistent = sum(opposite[a] == b for a, b in zip(shown_first, swapped, strict=True))
    both_first = sum(a == b == "first" for a, b in zip(shown_first, swapped, strict=True))
    both_second = sum(a == b == "second" for a, b in zip(shown_first, swapped, strict=True))
    decisive = [choice for choice in (*shown_first, *swapped) if choice != "tie"]
    share = wilson(decisive.count("first"), len(decisive), name="first_wins")
    flips = both_first + both_second
    p = min(1.0, 2 * binomial_cdf(min(both_first, both_second), flips, 0.5)) if flips else 1.0
    if share.value is not None:
        share = Stat(
            name="first_wins", value=share.value, n=share.n, lower=share.lower, upper=share.upper, level=share.level,
            sided="two", method="wilson", estimand="population", p=p,
            details={"both_first": both_first, "both_second": both_second},
        )  # fmt: skip
    return PositionProbe(wilson(consistent, len(shown_first), name="consistency"), share)


def self_preference(
    own_on_own: Numbers, other_on_own: Numbers, own_on_other: Numbers, other_on_other: Numbers
) -> tuple[Stat, Stat]:
    """Difference in differences: [J_A(x_A) - J_B(x_A)] - [J_A(x_B) - J_B(x_B)], by case.

    Returns:
        The sign-flip test by case, and the mean with a Bonett-Price interval on [-2, 2]; positive = judge A favours its
        own family. Undefined under 30 complete cases.
    """
    (aa, ba, ab, bb), dropped = complete(own_on_own, other_on_own, own_on_other, other_on_other)
    return _preference((aa - ba) - (ab - bb), dropped, span=2.0)


def self_preference_by_labels(
    judge_on_own: Numbers, human_on_own: Numbers, judge_on_other: Numbers, human_on_other: Numbers
) -> tuple[Stat, Stat]:
    """Residuals judge - human on the own family's answers minus those on another's, by case; returns as above."""
    (jo, ho, jx, hx), dropped = complete(judge_on_own, human_on_own, judge_on_other, human_on_other)
    return _preference((jo - ho) - (jx - hx), dropped, span=2.0)


def _preference(difference: np.ndarray, dropped: int, span: float) -> tuple[Stat, Stat]:
    n = len(difference)
    if n < MINIMUM_PROBE:
        refused = undefined("self_preference", "n_too_small", n=n, n_dropped=dropped)
        return refused, refused
    zero = np.zeros(n)
    return (
        sign_flip(zero, difference, name="self_preference"),
        paired_difference(difference, span=span, name="self_preference_shift"),
    )
