"""Every vector of stats_vectors.json, computed elsewhere with independent libraries, through one table of adapters."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.stats import (
    agreement,
    bias,
    ceilings,
    correlation,
    drift,
    grades,
    means,
    multiplicity,
    paired,
    partial_correlation,
    permutation,
    quality,
    rates,
    recalibration,
    regression_rule,
    tails,
)
from eval_pipeline.stats.calibration_rule import calibrate
from eval_pipeline.stats.stat import Stat

_ROOT = Path(__file__).resolve().parents[2]
_CASES = Path(os.environ.get("EVAL_CASES_DIR", _ROOT.parent / "shared" / "cases")) / "stats_vectors.json"

Vector = dict[str, Any]
Outcome = dict[str, Any]

pytestmark = pytest.mark.cases


def _vectors() -> list[Vector]:
    return json.loads(_CASES.read_text(encoding="utf-8"))["vectors"] if _CASES.is_file() else []


def _flat(stat: Stat, *names: str, **more: Any) -> Outcome:
    """A statistic under the names the vectors use for its value, limits and details."""
    out: Outcome = {**stat.details, "n": stat.n, "n_used": stat.n, "n_dropped": stat.n_dropped, "p": stat.p}
    out |= {"p_value": stat.p, "lower": stat.lower, "upper": stat.upper, "ci": [stat.lower, stat.upper]}
    out |= dict.fromkeys((*names, "value", "estimate"), stat.value) | more
    return out | {"status": stat.status, "reason": stat.reason}


def _level(given: Mapping[str, Any], default: float = 0.95) -> float:
    return given.get("conf", 1 - given["alpha"] if "alpha" in given else default)


def _limits(given: Mapping[str, Any], build: Callable[[float, Any], Stat], *names: str) -> Outcome:
    """A statistic with its two-sided interval and both one-sided limits."""
    two = build(_level(given), "two")
    one = build(given.get("one_sided_conf", 0.95), "one")
    ends = {"lower_one_sided": one.lower, "upper_one_sided": one.upper}
    ends |= {f"{side}_one_sided_95": build(0.95, "one").__getattribute__(side) for side in ("lower", "upper")}
    if "one_sided_conf" in given and "conf" not in given:
        ends |= {"lower": one.lower, "upper": one.upper}
    out = _flat(two, *names, **ends)
    centre = two.details.get("centre")
    return out | {f"{name}_adjusted": centre for name in names} | {"se": two.details.get("se", two.details.get("se_z"))}


def _pair(given: Mapping[str, Any]) -> tuple[Any, Any]:
    for first, second in (("x", "y"), ("a", "b"), ("human", "judge"), ("baseline", "candidate"), ("old", "new")):
        if first in given:
            return given[first], given[second]
    raise KeyError(f"no pair of columns in {sorted(given)}")


def _association(function: Any, *names: str) -> Callable[[Vector], Outcome]:
    def adapter(given: Vector) -> Outcome:
        first, second = _pair(given)
        clusters = given.get("clusters")
        return _limits(
            given, lambda level, sided: function(first, second, level=level, sided=sided, clusters=clusters), *names
        )

    return adapter


def _spearman_bonett_wright(given: Vector) -> Outcome:
    x, y = _pair(given)
    return _limits(given, lambda level, sided: correlation.spearman_bonett_wright(x, y, level, sided=sided), "rho")


def _agreement_block(given: Vector) -> Outcome:
    block = agreement.dual_agreement(*_pair(given), levels=given["levels"])
    return {
        "raw_agreement": block.exact.value, "exact_agreement": block.exact.value, "qwk": block.kappa.value,
        "kappa": block.kappa.value, "ac2": block.ac2.value, "status": block.kappa.status, "reason": block.kappa.reason,
        "n": block.exact.n,
    }  # fmt: skip


def _gwet(given: Vector) -> Outcome:
    stat = agreement.gwet_ac2(*_pair(given), levels=given.get("levels"), level=_level(given))
    return _flat(stat, "ac2")


def _krippendorff(given: Vector) -> Outcome:
    ratings = given["ratings"] if "ratings" in given else list(_pair(given))
    return _flat(agreement.krippendorff_alpha_ordinal(ratings), "alpha", "kappa")


def _wilson(given: Vector) -> Outcome:
    return _limits(
        given, lambda level, sided: rates.wilson(given["k"], given["n"], level, sided=sided), "rate", "p_hat"
    )


def _clopper_pearson(given: Vector) -> Outcome:
    return _limits(
        given, lambda level, sided: rates.clopper_pearson(given["k"], given["n"], level, sided=sided), "rate", "p_hat"
    )


def _cvar(given: Vector) -> Outcome:
    return _flat(tails.cvar(given["scores"], given.get("alpha", 0.1)), "cvar")


def _cvar_lower_bound(given: Vector) -> Outcome:
    stat = tails.cvar_lower_limit(given["scores"], given.get("alpha", 0.1), given.get("conf", 0.95))
    out = _flat(stat, "cvar")
    if stat.value is not None:
        # Reports clip the limit to the scale and give none for a tail of under 5 cases; vectors hold the formula.
        out["lower"] = out["lower_one_sided"] = stat.details["unclipped_lower"]
    return out


def _sign_flip(given: Vector) -> Outcome:
    old, new = (None, None) if "d" in given else _pair(given)
    if "d" in given:
        old, new = [0.0] * len(given["d"]), given["d"]
    stat = permutation.sign_flip(
        old, new, alternative=given.get("alternative", "two-sided"), clusters=given.get("clusters")
    )
    return _flat(stat, "mean_diff")


def _relabelling(given: Vector) -> Outcome:
    window = given.get("window", given.get("runs", given.get("baseline")))
    new = given.get("new", given.get("candidate"))
    return _flat(permutation.relabelling(window, new, alternative=given.get("alternative", "less")), "mean_diff")


def _mcnemar(given: Vector) -> Outcome:
    return _flat(paired.mcnemar(given["b"], given["c"]))


def _holm(given: Vector) -> Outcome:
    adjusted = multiplicity.holm(given["p"])
    out: Outcome = {"p_adj": adjusted, "status": "ok", "reason": None}
    if "alpha" in given:
        out["reject"] = [p is not None and p <= given["alpha"] for p in adjusted]
    return out


def _ppi(given: Vector) -> Outcome:
    plain = "quantile" in given or "ddof" in given
    stat = quality.ppi_mean(
        given["y"], given["f_labeled"], given["f_unlabeled"], given.get("conf", 0.95), lam=given.get("lam"),
        clip=given.get("clip", True), ddof=given.get("ddof", 1), quantile=given.get("quantile", "t"),
        pseudo_rectifiers=given.get("pseudo_obs", given.get("residual_pseudo_obs", not plain)), require_gain=not plain,
    )  # fmt: skip
    return _flat(stat, "mean", "theta")


def _rogan_gladen(given: Vector) -> Outcome:
    counts = [given[key] for key in ("judge_pass", "n", "tp", "human_pos", "tn", "human_neg")]
    return _limits(given, lambda level, sided: quality.rogan_gladen(*counts, level, sided=sided), "theta")


def _psi(given: Vector) -> Outcome:
    stat = drift.population_stability(
        given["expected_counts"], given["actual_counts"], smoothing=given.get("smoothing", 0.5),
        level=given.get("conf", 0.95),
    )  # fmt: skip
    null = stat.details.get("null_limit")
    return _flat(stat, "psi", null_limit=null, null_95=null, limit_95=null)


def _isotonic(given: Vector) -> Outcome:
    fit = recalibration.isotonic(given["x"], given["y"])
    grid = given.get("grid", sorted(set(given["x"])))
    fitted = fit.predict(grid).tolist() if fit.levels else None
    return {"fit": fitted, "status": fit.status, "reason": fit.reason, "n": fit.n, "n_dropped": fit.n_dropped}


def _tost(given: Vector) -> Outcome:
    stat = paired.equivalence_t(given["old"], given["new"], given["margin"], given.get("alpha", 0.05))
    equivalent = stat.details.get("is_equivalent")
    return _flat(stat, "mean_diff", equivalent=equivalent)


def _cluster_se(given: Vector) -> Outcome:
    return _flat(means.cluster_standard_errors(given["scores"], given["clusters"]), "mean")


def _partial_spearman(given: Vector) -> Outcome:
    return _flat(partial_correlation.partial_spearman(given["score"], given["length"], given["human"]), "r")


def _combine_dual(given: Vector) -> Outcome:
    top = given["scale_max"]
    dual = grades.combine_dual(given["g1"], given["g2"], given.get("allowed", [0, top / 2, top]))
    mean = dual.mean()
    return {
        "score": dual.scores, "status": dual.statuses, "mean_valid": mean.value, "n_valid": mean.n,
        "n_invalid": dual.invalid_count, "missing_grade_rate": dual.missing_grade_share,
        "manski_mean": mean.details.get("bounds"), "n_single": int((dual.valid_count == 1).sum()),
        "stat_status": mean.status, "reason": mean.reason,
    }  # fmt: skip


def _mean_pseudo(given: Vector) -> Outcome:
    return _limits(
        given,
        lambda level, sided: means.mean_interval(given["scores"], level, clusters=given.get("clusters"), sided=sided),
        "mean",
    ) | {"n_eff": means.mean_interval(given["scores"], clusters=given.get("clusters")).details.get("n_effective")}


def _sample_size_width(given: Vector) -> Outcome:
    return {"n": ceilings.labels_for_width(given["rho"], given["width"], given.get("alpha", 0.05)), "status": "ok"}


def _sample_size_bar(given: Vector) -> Outcome:
    n = ceilings.labels_for_power(
        given["rho"], given.get("bar", 0.7), given.get("alpha", 0.05), given.get("power", 0.8)
    )
    return {"n": n, "status": "ok"}


def _bonett_price(given: Vector) -> Outcome:
    differences = given["d"] if "d" in given else [b - a for a, b in zip(*_pair(given), strict=True)]
    return _limits(
        given, lambda level, sided: paired.paired_difference(differences, level=level, sided=sided), "mean_diff"
    )


def _prediction_limit(given: Vector) -> Outcome:
    stat = regression_rule.run_prediction_limit(given["means"], given.get("conf", 0.95))
    return _flat(stat, "mean", mean_runs=stat.value)


def _noise_floor(given: Vector) -> Outcome:
    return _flat(paired.noise_floor(given.get("judgings", given.get("runs", given.get("scores")))), "sd")


def _mde(given: Vector) -> Outcome:
    sd, alpha, power = given.get("sd", given.get("sd_d")), given.get("alpha", 0.05), given.get("power", 0.8)
    out: Outcome = {"status": "ok", "reason": None}
    if "n" in given:
        out["mde"] = paired.minimum_detectable_effect(sd, given["n"], alpha, power)
    if "delta" in given:
        out["n"] = paired.cases_to_detect(sd, given["delta"], alpha, power)
    return out


def _mean_bias(given: Vector) -> Outcome:
    return _limits(given, lambda level, _: bias.mean_bias(*_pair(given), level=level), "bias")


def _brier(given: Vector) -> Outcome:
    return _flat(recalibration.brier_score(*_probabilities(given)), "brier")


def _ece(given: Vector) -> Outcome:
    return _flat(recalibration.expected_calibration_error(*_probabilities(given)), "ece")


def _probabilities(given: Vector) -> tuple[Any, Any]:
    return given.get("p", given.get("prob")), given.get("y", given.get("outcome"))


def _ceiling(given: Vector) -> Outcome:
    return _flat(ceilings.ceiling_by_marginals(*_pair(given)), "ceiling", "rho_max", "rho")


def _quantile(given: Vector) -> Outcome:
    return _limits(
        given, lambda level, sided: tails.low_quantile(given["scores"], given.get("p", 0.1), level, sided=sided), "q10"
    )


def _calibration(given: Vector) -> Outcome:
    result = calibrate(*_pair(given), bar=given.get("bar", 0.7))
    return _flat(
        result.spearman_rho, "rho", decision=result.decision, provisional=result.provisional, reason=result.reason
    )


ADAPTERS: dict[str, Callable[[Vector], Outcome]] = {
    "agreement_block": _agreement_block,
    "brier": _brier,
    "calibration_decision": _calibration,
    "ceiling_by_marginals": _ceiling,
    "clopper_pearson": _clopper_pearson,
    "cluster_mean_ci_pseudo": _mean_pseudo,
    "combine_dual": _combine_dual,
    "cvar_lower": _cvar,
    "cvar_lower_bound": _cvar_lower_bound,
    "ece": _ece,
    "gwet_ac2": _gwet,
    "holm": _holm,
    "isotonic": _isotonic,
    "kendall_ci_jackknife_z": _association(correlation.kendall_tau_b, "tau"),
    "kendall_tau_b": _association(correlation.kendall_tau_b, "tau"),
    "krippendorff_alpha_ordinal": _krippendorff,
    "mcnemar_exact": _mcnemar,
    "mde": _mde,
    "mean_bias": _mean_bias,
    "mean_ci_pseudo": _mean_pseudo,
    "mean_cluster_se": _cluster_se,
    "noise_floor": _noise_floor,
    "paired_diff_bonett_price": _bonett_price,
    "paired_permutation_exact": _sign_flip,
    "partial_spearman": _partial_spearman,
    "ppi_mean": _ppi,
    "psi": _psi,
    "quadratic_weighted_kappa": _association(agreement.quadratic_weighted_kappa, "kappa", "qwk"),
    "quantile_ci": _quantile,
    "qwk_ci_jackknife_z": _association(agreement.quadratic_weighted_kappa, "kappa", "qwk"),
    "relabelling_exact": _relabelling,
    "rogan_gladen": _rogan_gladen,
    "run_prediction_limit": _prediction_limit,
    "sample_size_spearman_bar": _sample_size_bar,
    "sample_size_spearman_width": _sample_size_width,
    "spearman": _association(correlation.spearman, "rho"),
    "spearman_ci_bonett_wright": _spearman_bonett_wright,
    "spearman_ci_jackknife_z": _association(correlation.spearman, "rho"),
    "tost_paired": _tost,
    "wilson": _wilson,
}


def _assert_equal(actual: Any, expected: Any, tolerance: float, where: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in actual, f"{where}: no {key} among {sorted(actual)}"
            _assert_equal(actual[key], value, tolerance, f"{where}.{key}")
    elif isinstance(expected, list):
        assert actual is not None and len(actual) == len(expected), f"{where}: {actual} != {expected}"
        for position, (one, other) in enumerate(zip(actual, expected, strict=True)):
            _assert_equal(one, other, tolerance, f"{where}[{position}]")
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        assert actual is not None, f"{where}: undefined, {expected} expected"
        assert actual == pytest.approx(expected, abs=max(tolerance, 1e-15), rel=1e-13), where
    else:
        assert actual == expected, f"{where}: {actual!r} != {expected!r}"


@pytest.mark.skipif(not _CASES.is_file(), reason=f"{_CASES} is absent; EVAL_CASES_DIR names its folder")
@pytest.mark.parametrize("vector", _vectors(), ids=lambda vector: vector["id"])
def test_statistic_agrees_with_the_independent_library(vector: Vector) -> None:
    outcome = ADAPTERS[vector["function"]](vector["input"])
    if vector.get("undefined"):
        stated = {key: outcome[key] for key in vector["undefined"]}
        assert stated == vector["undefined"]
    if vector["expected"] is None:
        assert outcome["value"] is None
    else:
        _assert_equal(outcome, vector["expected"], vector["tolerance"], vector["id"])
