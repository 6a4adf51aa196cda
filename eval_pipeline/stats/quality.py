"""True quality from many judge scores and few human labels: PPI++, Rogan-Gladen, and which of them applies.

The raw judge mean (`means`) is always shown beside, labelled uncorrected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .counts import Floats, Numbers, as_floats, complete
from .means import mean_interval
from .quantiles import normal_quantile, t_quantile, tail_probability
from .stat import Sided, Stat, undefined

MINIMUM_LABELS = 50


def ppi_mean(
    human: Numbers,
    judge_labelled: Numbers,
    judge_unlabelled: Numbers,
    level: float = 0.95,
    *,
    lam: float | None = None,
    clip: bool = True,
    ddof: int = 1,
    quantile: Literal["t", "normal"] = "t",
    pseudo_rectifiers: bool = True,
    require_gain: bool = True,
    weights: Numbers | None = None,
    sided: Sided = "two",
    name: str = "ppi_mean",
) -> Stat:
    """PPI++ mean (Angelopoulos, Duchi & Zrnic 2023): lam * mean(f_U) + mean(y - lam f_L).

    The default interval is t(n-1) with two extreme rectifiers (-lam and 1) added to the residuals: at 50 skewed labels
    the plain interval covers .85 instead of .95. Valid when the labels are a random sample of *this* run's cases.

    Args:
        human: Labels y in [0, 1]. judge_labelled: judge scores f_L of the same cases.
        judge_unlabelled: Judge scores f_U of the run's other cases.
        level: Confidence level.
        lam: Power; None = tuned, cov(y, f_L) / ((1 + n/N) var(f)).
        clip: Keep a tuned lam in [0, 1].
        ddof: Divisor n - ddof of the plain interval.
        quantile: Student's t with n-1 degrees of freedom, or normal.
        pseudo_rectifiers: Add the two rectifiers (population variance, n + 2).
        require_gain: Use lam = 0 (the human mean) when cor(y, f) is at most 1/sqrt(n-2): tuning then adds noise.
        weights: Inverse inclusion probabilities of the labelled cases, when they were not drawn evenly.
        sided: Of the limits. name: of the statistic.

    Returns:
        The estimate; `details.lam`. `fallback` with `constant_judge` or `no_gain` when lam was set to 0.
    """
    (y, f, w), dropped = complete(human, judge_labelled, np.ones(len(human)) if weights is None else weights)
    (u,), dropped_unlabelled = complete(judge_unlabelled)
    n, big_n, dropped = len(y), len(u), dropped + dropped_unlabelled
    if n < 2:
        return undefined(name, "n_too_small" if n else "n_zero", n=n, n_dropped=dropped)
    if (w <= 0).any():
        raise ValueError("Inverse inclusion probabilities must be positive.")
    w = w / w.sum()
    status, reason = ("ok", None) if n >= 20 else ("low_precision", "n_too_small")
    if lam is None:
        lam, fallback = _tuned_lambda(y, f, u, w, ddof, clip, require_gain)
        if fallback:
            status, reason = "fallback", fallback
    if big_n == 0 and lam != 0:
        lam, status, reason = 0.0, "fallback", "no_unlabelled_cases"
    rectifier = y - lam * f
    judge_part = lam * float(u.mean()) if big_n else 0.0
    value = judge_part + float(w @ rectifier)
    judge_variance = lam**2 * float(u.var(ddof=min(ddof, big_n - 1))) / big_n if big_n else 0.0
    n_effective = 1 / float(w @ w)
    if pseudo_rectifiers:
        extended = np.append(rectifier, [-lam, 1.0])
        mass = np.append(w * n_effective, [1.0, 1.0])
        mass /= mass.sum()
        middle = float(mass @ extended)
        label_variance = float(mass @ (extended - middle) ** 2) / (n_effective + 2)
        centre = judge_part + middle
    else:
        spread = float(w @ (rectifier - w @ rectifier) ** 2)
        label_variance = spread * n_effective / (n_effective - ddof) / n_effective
        centre = value
    probability = tail_probability(level, sided)
    q = t_quantile(probability, n - 1) if quantile == "t" else normal_quantile(probability)
    half = q * math.sqrt(judge_variance + label_variance)
    method = "ppi_pseudo_rectifiers" if pseudo_rectifiers else "ppi"
    return Stat(
        name=name, value=value, n=n, n_dropped=dropped, lower=min(centre - half, value),
        upper=max(centre + half, value),
        level=level, sided=sided, method=method, status=status, reason=reason, estimand="population",
        assumptions=("labels are a random sample of this run's cases",),
        details={
            "lam": lam, "n_unlabelled": big_n, "n_effective": n_effective, "centre": centre,
            "se": math.sqrt(judge_variance + label_variance), "human_mean": float(w @ y),
        },
    )  # fmt: skip


def _tuned_lambda(
    y: Floats, f: Floats, u: Floats, w: Floats, ddof: int, clip: bool, require_gain: bool
) -> tuple[float, str | None]:
    n, big_n = len(y), len(u)
    everything = np.concatenate([f, u])
    variance = float(everything.var(ddof=1))
    if variance < 1e-15 or big_n == 0 or float(f.var()) < 1e-15:
        return 0.0, "constant_judge" if big_n else "no_unlabelled_cases"
    covariance = float(w @ ((y - w @ y) * (f - w @ f))) * n / (n - ddof)
    if require_gain and n > 2:
        scale = math.sqrt(float(w @ (y - w @ y) ** 2) * float(w @ (f - w @ f) ** 2)) * n / (n - ddof)
        if scale < 1e-15 or covariance / scale <= 1 / math.sqrt(n - 2):
            return 0.0, "no_gain"
    lam = covariance / ((1 + n / big_n) * variance)
    return (min(1.0, max(0.0, lam)) if clip else lam), None


def human_mean(human: Numbers, level: float = 0.95, *, sided: Sided = "two") -> Stat:
    """The mean of the labels alone; PPI++ must beat its interval to be worth showing."""
    return mean_interval(human, level, sided=sided, name="human_mean")


@dataclass(frozen=True, slots=True)
class Stratum:
    """The cases of one judge-score stratum: its share of the run, labels, and judge scores."""

    weight: float
    human: Numbers
    judge_labelled: Numbers
    judge_unlabelled: Numbers


def stratified_ppi_mean(strata: Sequence[Stratum], level: float = 0.95, *, sided: Sided = "two") -> Stat:
    """Weighted sum of per-stratum PPI++ estimates (Fisch et al. 2024), Satterthwaite degrees of freedom.

    For labels sampled by judge score. A stratum with weight and fewer than 2 labels makes it undefined.
    """
    total = sum(stratum.weight for stratum in strata)
    name = "stratified_ppi_mean"
    if not strata or total <= 0:
        return undefined(name, "n_zero")
    parts = [
        (stratum.weight / total, ppi_mean(stratum.human, stratum.judge_labelled, stratum.judge_unlabelled, level))
        for stratum in strata
        if stratum.weight > 0
    ]
    n, dropped = sum(part.n for _, part in parts), sum(part.n_dropped for _, part in parts)
    if any(part.value is None for _, part in parts):
        return undefined(name, "missing_stratum", n=n, n_dropped=dropped)
    value = sum(weight * part.value for weight, part in parts if part.value is not None)
    centre = sum(weight * part.details["centre"] for weight, part in parts)
    variances = [(weight * part.details["se"]) ** 2 for weight, part in parts]
    df = sum(variances) ** 2 / sum(v**2 / (part.n - 1) for v, (_, part) in zip(variances, parts, strict=True))
    half = t_quantile(tail_probability(level, sided), df) * math.sqrt(sum(variances))
    return Stat(
        name=name, value=value, n=n, n_dropped=dropped, lower=min(centre - half, value),
        upper=max(centre + half, value),
        level=level, sided=sided, method="stratified_ppi", estimand="population",
        assumptions=("labels are a random sample within each stratum",),
        details={"df": df, "lam": [part.details["lam"] for _, part in parts]},
    )  # fmt: skip


def rogan_gladen(
    judge_pass: int, n: int, tp: int, human_pos: int, tn: int, human_neg: int, level: float = 0.95,
    *, sided: Sided = "two",
) -> Stat:  # fmt: skip
    """Pass share corrected for a judge's sensitivity and specificity (Rogan & Gladen 1978; Lang & Reiczigel 2014).

    Args:
        judge_pass: Cases the judge passes, of `n`.
        tp: Human-passed labels the judge passes, of `human_pos`. tn: human-failed it fails, of `human_neg`.
        level: Confidence level. sided: of the limits.

    Returns:
        (p + Sp - 1) / (Se + Sp - 1), clipped to [0, 1] with the raw value in `details.unclipped`. Undefined:
        `n_zero`, `single_class_labels`, `judge_not_informative` (Se + Sp <= 1).
    """
    name = "rogan_gladen"
    if not (0 <= judge_pass <= n and 0 <= tp <= human_pos and 0 <= tn <= human_neg):
        raise ValueError(f"{name}: a count is larger than its total.")
    labels = human_pos + human_neg
    if n == 0 or labels == 0:
        return undefined(name, "n_zero", n=n)
    if human_pos == 0 or human_neg == 0:
        return undefined(name, "single_class_labels", n=n)
    sensitivity, specificity = tp / human_pos, tn / human_neg
    if sensitivity + specificity <= 1 + 1e-12:
        return undefined(name, "judge_not_informative", n=n)
    raw = (judge_pass / n + specificity - 1) / (sensitivity + specificity - 1)
    value = min(1.0, max(0.0, raw))
    z = normal_quantile(tail_probability(level, sided))
    p = (judge_pass + z * z / 2) / (n + z * z)
    se_1, sp_1 = (tp + 1) / (human_pos + 2), (tn + 1) / (human_neg + 2)
    informative = se_1 + sp_1 - 1
    lower = upper = se = None
    if informative > 0:
        theta = (p + sp_1 - 1) / informative
        se_term = se_1 * (1 - se_1) / (human_pos + 2)
        sp_term = sp_1 * (1 - sp_1) / (human_neg + 2)
        shift = 2 * z * z * (theta * se_term - (1 - theta) * sp_term)
        se = math.sqrt(p * (1 - p) / (n + z * z) + theta**2 * se_term + (1 - theta) ** 2 * sp_term) / informative
        lower, upper = (min(1.0, max(0.0, theta + shift + sign * z * se)) for sign in (-1, 1))
    clipped = raw != value
    return Stat(
        name=name, value=value, n=n, lower=lower, upper=upper, level=level, sided=sided, method="lang_reiczigel",
        estimand="population", status="low_precision" if informative <= 0 else "ok",
        reason="judge_not_informative" if informative <= 0 else None,
        assumptions=("TPR and TNR of the judge are the same as where the labels were collected",),
        notes=(f"clipped from {raw:.4f}",) if clipped else (),
        details={
            "unclipped": raw, "is_clipped": clipped, "sensitivity": sensitivity, "specificity": specificity,
            "label_count": labels, "se": se,
        },
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CorrectedQuality:
    """The estimates of true quality that apply, and which of them is to be read."""

    estimator: Literal["ppi_mean", "rogan_gladen", "uncorrected"]
    reason: str
    raw: Stat
    corrected: Stat | None
    human_only: Stat | None


def corrected_quality(
    judge_all: Numbers,
    human: Numbers | None = None,
    *,
    labels_are_random: bool = True,
    weights: Numbers | None = None,
    older_labels: tuple[Numbers, Numbers] | None = None,
    cut: float | None = None,
    level: float = 0.95,
) -> CorrectedQuality:
    """Pick the estimator: labels of this run -> PPI++; labels of another run -> Rogan-Gladen; else uncorrected.

    Args:
        judge_all: Judge score of every case of the run (None = invalid).
        human: Human label of the same cases, None where unlabelled.
        labels_are_random: Whether those cases were drawn with known probabilities.
        weights: Inverse inclusion probabilities, one per case, read where labelled.
        older_labels: (human, judge) pairs from another run; used for a pass/fail metric with a `cut`.
        cut: Score at or above which a case passes.
        level: Confidence level.
    """
    judge = as_floats(judge_all)
    raw = mean_interval(judge, level, name="judge_mean_uncorrected")
    if human is not None and labels_are_random:
        labels = as_floats(human)
        labelled = ~np.isnan(labels) & ~np.isnan(judge)
        if int(labelled.sum()) >= MINIMUM_LABELS:
            own_weights = None if weights is None else as_floats(weights)[labelled]
            corrected = ppi_mean(labels[labelled], judge[labelled], judge[~labelled], level, weights=own_weights)
            only = human_mean(labels[labelled], level) if own_weights is None else None
            return CorrectedQuality("ppi_mean", "random labels of this run", raw, corrected, only)
    if older_labels is not None and cut is not None:
        (h, j), _ = complete(*older_labels)
        good, passed = h >= cut, j >= cut
        valid = judge[~np.isnan(judge)]
        corrected = rogan_gladen(
            int((valid >= cut).sum()), len(valid), int((good & passed).sum()), int(good.sum()),
            int((~good & ~passed).sum()), int((~good).sum()), level,
        )  # fmt: skip
        if corrected.value is not None:
            return CorrectedQuality(
                "rogan_gladen", "labels of another run: assumes stable TPR/TNR", raw, corrected, None
            )
        return CorrectedQuality("uncorrected", corrected.reason or "undefined", raw, None, None)
    return CorrectedQuality("uncorrected", f"fewer than {MINIMUM_LABELS} random labels of this run", raw, None, None)
