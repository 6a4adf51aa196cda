"""What counts as a regression: permutation test AND run-level prediction limit AND a drop of some size.

The permutation test alone false-alarms up to 33% under shifts common to a whole run, because more cases only make it
surer. Comparability, floors and verdict order belong to the gate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .counts import Numbers, as_floats, complete
from .paired import minimum_detectable_effect, paired_difference
from .permutation import relabelling, sign_flip
from .quantiles import t_quantile
from .stat import Stat, undefined

MINIMUM_EFFECT = 0.01
MINIMUM_RUNS = 5

RegressionVerdict = Literal["regression", "no_regression", "needs_confirmation", "undefined"]


def run_prediction_limit(means: Numbers, level: float = 0.95, *, noise_floor: float = 0.0) -> Stat:
    """Lower limit for the mean of one more run: wbar - t_{N-1} s sqrt(1 + 1/N). Value: the mean of the runs.

    Args:
        means: Means of the runs of the window (no replays, no failed runs).
        level: One-sided level.
        noise_floor: Standard deviation of one run's mean known from repeated judging; s is never below it.
    """
    (runs,), dropped = complete(means)
    name, n = "run_prediction_limit", len(runs)
    if n < 2:
        return undefined(name, "n_too_small", n=n, n_dropped=dropped)
    s = max(float(runs.std(ddof=1)), noise_floor)
    half = t_quantile(level, n - 1) * s * math.sqrt(1 + 1 / n)
    mean = float(runs.mean())
    low = n < MINIMUM_RUNS
    return Stat(
        name=name, value=mean, n=n, n_dropped=dropped, lower=mean - half, upper=mean + half, level=level, sided="one",
        method="prediction_interval", estimand="fixed_set", status="low_precision" if low else "ok",
        reason="few_runs" if low else None, details={"sd_runs": s},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Regression:
    """One comparison of a run with a window or a pin.

    Attributes:
        verdict: `needs_confirmation`: it looks like a regression but there are fewer than 5 runs, so no prediction
            limit; one re-judging of both sides must confirm it. `undefined`: nothing to compare, never a pass.
        test: The permutation test; its value is the mean change. limit: the prediction limit, undefined without window.
        effect: The change with its interval. detectable: smallest drop that the set would show with 80% power.
    """

    verdict: RegressionVerdict
    reason: str
    test: Stat
    limit: Stat
    effect: Stat
    detectable: float | None

    def decided_at(self, p: float | None, alpha: float, minimum_effect: float = MINIMUM_EFFECT) -> RegressionVerdict:
        """The verdict with another p value: one adjusted over metrics by Holm."""
        return _verdict(self.test, p, self.limit, self.new_mean, alpha, minimum_effect)[0]

    @property
    def new_mean(self) -> float | None:
        """Mean of the new run over the compared cases."""
        return self.effect.details.get("new_mean")


def against_window(
    window: Sequence[Numbers], new: Numbers, *, alpha: float = 0.05, minimum_effect: float = MINIMUM_EFFECT,
    noise_floor: float = 0.0, run_means: Numbers | None = None, seed: int = 0,
) -> Regression:  # fmt: skip
    """Compare a run with the last N compatible runs on their shared cases: relabelling test and prediction limit.

    Args:
        window: Earlier runs, the same cases in the same order, None = missing.
        new: The new run. alpha: one-sided. minimum_effect: smaller drops are not a regression.
        noise_floor: sd of a re-run difference (section noise floor); the sd of one run's mean is that / sqrt(2).
        run_means: Means of the window's runs, where they are known over the same cases; default: from `window`.
        seed: Of the Monte Carlo test, off the grid only.
    """
    test = relabelling(window, new, alternative="less", seed=seed)
    runs = [as_floats(run) for run in window]
    scores = as_floats(new)
    if run_means is None:
        shared = ~np.isnan(scores)
        run_means = [float(np.nanmean(run[shared])) if (~np.isnan(run[shared])).any() else None for run in runs]
    limit = run_prediction_limit(run_means, noise_floor=noise_floor / math.sqrt(2))
    reference = np.full(len(scores), np.nan)
    if runs:
        stacked = np.stack(runs)
        available = (~np.isnan(stacked)).sum(axis=0)
        reference = np.where(available > 0, np.nansum(stacked, axis=0) / np.maximum(available, 1), np.nan)
    return _regression(test, limit, reference, scores, alpha, minimum_effect)


def against_pin(
    pinned: Numbers, new: Numbers, *, limit: Stat | None = None, alpha: float = 0.05,
    minimum_effect: float = MINIMUM_EFFECT, seed: int = 0,
) -> Regression:  # fmt: skip
    """Compare a run with one pinned run: sign-flip test, and the run-to-run noise of the window around the pin's mean.

    Args:
        limit: Prediction limit of the window; its sd gives pin mean - t s sqrt(2), what one run may lie below another.
    """
    test = sign_flip(pinned, new, alternative="less", seed=seed)
    old, scores = as_floats(pinned), as_floats(new)
    shared = ~(np.isnan(old) | np.isnan(scores))
    own = undefined("run_prediction_limit", "few_runs", n=limit.n if limit else 0)
    if limit is not None and limit.value is not None and shared.any():
        half = t_quantile(limit.level or 0.95, limit.n - 1) * limit.details["sd_runs"] * math.sqrt(2)
        mean = float(old[shared].mean())
        own = Stat(
            name="run_prediction_limit", value=mean, n=limit.n, lower=mean - half, upper=mean + half, level=limit.level,
            sided="one", method="prediction_interval_of_difference", estimand="fixed_set", status=limit.status,
            reason=limit.reason, details=limit.details,
        )  # fmt: skip
    return _regression(test, own, old, scores, alpha, minimum_effect)


def _regression(
    test: Stat, limit: Stat, reference: np.ndarray, new: np.ndarray, alpha: float, minimum_effect: float
) -> Regression:
    effect = paired_difference(reference, new, 0.90)
    shared = ~(np.isnan(reference) | np.isnan(new))
    mean = float(new[shared].mean()) if shared.any() else None
    if effect.value is not None:
        effect = Stat(
            name=effect.name, value=effect.value, n=effect.n, n_dropped=effect.n_dropped, lower=effect.lower,
            upper=effect.upper, level=effect.level, sided=effect.sided, method=effect.method, estimand=effect.estimand,
            notes=effect.notes, details={**effect.details, "new_mean": mean},
        )  # fmt: skip
    detectable = minimum_detectable_effect(effect.details["sd"], effect.n, alpha) if effect.value is not None else None
    verdict, reason = _verdict(test, test.p, limit, mean, alpha, minimum_effect)
    return Regression(verdict, reason, test, limit, effect, detectable)


def _verdict(
    test: Stat, p: float | None, limit: Stat, mean: float | None, alpha: float, minimum_effect: float
) -> tuple[RegressionVerdict, str]:
    if test.value is None or p is None or mean is None:
        return "undefined", test.reason or "no_comparable_baseline"
    if p >= alpha:
        return "no_regression", "permutation test not significant"
    if -test.value < minimum_effect - 1e-12:
        return "no_regression", f"drop {-test.value:.4f} under the minimum effect {minimum_effect}"
    if limit.lower is None or limit.n < MINIMUM_RUNS:
        return "needs_confirmation", f"{limit.n} runs in the window, {MINIMUM_RUNS} needed for a prediction limit"
    if mean >= limit.lower:
        return "no_regression", f"mean {mean:.4f} within the run-to-run noise, down to {limit.lower:.4f}"
    return "regression", f"mean {mean:.4f} below {limit.lower:.4f}, p {p:.2g}"
