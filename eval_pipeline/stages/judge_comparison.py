"""The parallel baseline of a judge change: old and new judge on the same stored responses.

Says what the change does to the series; whether a judge may judge at all is in `calibration`.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from eval_pipeline.stats.agreement import exact_agreement, quadratic_weighted_kappa
from eval_pipeline.stats.correlation import spearman_difference
from eval_pipeline.stats.counts import PairTable
from eval_pipeline.stats.paired import equivalence
from eval_pipeline.stats.tails import catastrophic_share, cvar
from eval_pipeline.vocabulary import Language

CONTINUES, NEW_SERIES, NOT_CALIBRATED, NOTHING_SHARED = "continues", "new_series", "not_calibrated", "nothing_shared"
"""Equivalent: the series goes on with a mark. Else a new series starts: judge the baseline again, splice nothing."""
DECISIONS = {
    CONTINUES: ("equivalent, the series continues", "동등하며 계열이 이어집니다"),
    NEW_SERIES: ("not equivalent, a new series starts", "동등하지 않아 새 계열이 시작됩니다"),
    NOT_CALIBRATED: ("the new judge is not calibrated", "새 심판이 보정되지 않았습니다"),
}
"""In English and in Korean."""
EMPTY = ("mean_shift", "lower", "upper", "equivalent", "p", "quadratic_weighted_kappa", "exact_agreement", "cvar10_shift",
         "catastrophic_shift", "rho_old", "rho_new", "rho_difference_p", "decision")  # fmt: skip


def compare(
    old: pl.DataFrame,
    new: pl.DataFrame,
    margin: float = 0.03,
    *,
    labels: pl.DataFrame | None = None,
    is_calibrated: dict[str, bool] | None = None,
) -> list[dict[str, Any]]:
    """One row per shared metric: mean shift with its 90 % interval, equivalence, agreement, level and tail shifts.

    Only responses that both judged are compared: same item, same content.

    Args:
        old: `scores` rows by the old judge. new: by the new one.
        margin: the largest mean shift that is still the same series; equivalence is TOST at 5 %.
        labels: columns metric, content_sha256, human, old, new: both judges on the calibration set, for the paired
            difference of rho.
        is_calibrated: by metric, whether the new judge may judge; unknown counts as not.
    """
    found = []
    for metric in sorted(set(old["metric"]) & set(new["metric"])):
        both = _paired(*(side.filter(pl.col("metric") == metric) for side in (old, new)))
        row: dict[str, Any] = {"metric": metric, "n": both.height, "margin": margin} | dict.fromkeys(EMPTY)
        if both.is_empty():
            found.append(row | {"decision": NOTHING_SHARED, "levels": [], "strata": []})
            continue
        row |= _shifts(both, margin) | _on_labels(labels, metric)
        if is_calibrated is not None and not is_calibrated.get(metric, False):
            row["decision"] = NOT_CALIBRATED
        else:
            row["decision"] = CONTINUES if row["equivalent"] else NEW_SERIES
        found.append(row)
    return found


def _paired(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    wanted = [name for name in ("item_id", "content_sha256", "value", "stratum") if name in new.columns]
    known = old.select("item_id", "content_sha256", pl.col("value").alias("value_old"))
    joined = known.join(new.select(wanted), on=["item_id", "content_sha256"])
    return joined.drop_nulls(["value_old", "value"]).sort("item_id")


def _shifts(both: pl.DataFrame, margin: float) -> dict[str, Any]:
    before, after = both["value_old"].to_numpy(), both["value"].to_numpy()
    table = PairTable.from_rows(before, after)
    shift = equivalence(table, margin=margin)
    tails = [cvar(values).value or 0.0 for values in (before, after)]
    bad = [catastrophic_share(values, 0.0).value or 0.0 for values in (before, after)]
    cells = zip(table.x.tolist(), table.y.tolist(), table.counts.tolist(), strict=True)
    return {
        "mean_shift": shift.value, "lower": shift.lower, "upper": shift.upper, "p": shift.p,
        "equivalent": bool(shift.details["is_equivalent"]),
        "quadratic_weighted_kappa": quadratic_weighted_kappa(table).value,
        "exact_agreement": exact_agreement(table).value,
        "cvar10_shift": tails[1] - tails[0],
        "catastrophic_shift": bad[1] - bad[0],
        "levels": [{"old": o, "new": n, "count": int(c)} for o, n, c in cells] if len(table.counts) <= 64 else [],
        "strata": _strata(both),
    }  # fmt: skip


def _strata(both: pl.DataFrame) -> list[dict[str, Any]]:
    if "stratum" not in both.columns:
        return []
    shift = (pl.col("value") - pl.col("value_old")).mean().alias("mean_shift")
    return both.group_by("stratum").agg(pl.len().alias("count"), shift).sort("stratum").to_dicts()


def _on_labels(labels: pl.DataFrame | None, metric: str) -> dict[str, Any]:
    """Both judges against people on the same labels; the jackknife deletes the same text from both."""
    if labels is None:
        return {}
    rows = labels.filter(pl.col("metric") == metric)
    human, old, new = (rows[name].cast(pl.Float64).to_numpy() for name in ("human", "old", "new"))
    change = spearman_difference(human, old, new)
    return {
        "rho_old": change.details.get("rho_old"),
        "rho_new": change.details.get("rho_new"),
        "rho_difference_p": change.p,
    }


def change_log(row: dict[str, Any], language: Language = Language.EN) -> str:
    """The comparison of one metric in a sentence; the log of decisions keeps the English one."""
    metric, is_korean = row["metric"], language == Language.KO
    if row["decision"] == NOTHING_SHARED:
        return f"{metric}: " + (
            "두 심판이 함께 판정한 응답이 없습니다" if is_korean else "no response was judged by both"
        )
    said, kappa = DECISIONS[row["decision"]][is_korean], row["quadratic_weighted_kappa"]
    agreed = ("정의되지 않음" if is_korean else "undefined") if kappa is None else f"{kappa:.2f}"
    shift, limits = f"{row['mean_shift']:+.3f}", f"[{row['lower']:+.3f}, {row['upper']:+.3f}]"
    margin, worst = f"{row['margin']:g}", f"{row['cvar10_shift']:+.3f}"
    if is_korean:
        return (
            f"{metric}: {said}. 응답 {row['n']}개에서 평균 이동 {shift} {limits}, 허용 폭 {margin}, 가중 카파 {agreed}, "
            f"하위 10% {worst}"
        )
    return (
        f"{metric}: {said}; mean shift {shift} {limits} within {margin} on {row['n']} responses, "
        f"weighted kappa {agreed}, worst 10% {worst}"
    )
