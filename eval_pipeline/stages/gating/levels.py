"""Rules about one metric of this evaluation alone: invalid share, calibration, floor, worst 10 %, catastrophes.

Every level is checked on the values and again with each missing grade the worst: a grade that is lost never helps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from eval_pipeline.korean import in_korean
from eval_pipeline.stages.gating.case import ALL, LISTED_ITEMS, Case, Rule, number
from eval_pipeline.stats.counts import Counts, as_counts
from eval_pipeline.stats.tails import cvar
from eval_pipeline.vocabulary import (
    CALIBRATION_KO,
    PROVENANCE_KO,
    SCORED_STATUSES,
    CalibrationDecision,
    Decision,
    ScoreStatus,
)

TAIL_ITEMS = 100
"""Fewer values than this have fewer than 10 in their worst 10 %: too few to gate."""

CALIBRATION_NUMBERS = ("spearman_rho", "rho_lower", "rho_upper", "pair_count", "bar", "attempt")
REASONS = {
    "no_labels": "0 labels",
    "constructed_labels": "constructed labels certify nothing",
    "model_labels": "labels made by a model certify nothing",
    "mixed_labels": "no human labels among them",
    "n_too_small": "too few labels",
    "constant_labels": "all labels are the same",
    "few_off_modal_labels": "fewer than 10 labels off the most frequent one",
    "constant_judge": "the judge gives one grade only",
    "limits_include_bar": "the limits include the bar",
    "labels_used_in_tuning": "labels were used in tuning",
}


def levels(case: Case, metric: str) -> list[Rule]:
    """All rules of this module for one metric."""
    row = case.summary(metric)
    rules = [_invalid(case, metric, row), _calibration(case, metric)]
    return rules if row is None or row["mean"] is None else [*rules, *_demanded(case, metric, row)]


def _invalid(case: Case, metric: str, row: Mapping[str, Any] | None) -> Rule:
    cap = case.gate.max_invalid_share
    if row is None or row["mean"] is None:
        return Rule("invalid", metric, Decision.BLOCKED, "nothing was scored", "점수가 하나도 없습니다")
    share, upper = row["invalid_share"], row["invalid_share_upper"]
    if share is None:
        return Rule("invalid", metric, Decision.NOT_EVALUATED, "no question was asked", "물어본 질문이 없습니다")
    over = f" > {cap:.0%}" if share > cap else ""
    bad = case.scores.filter((pl.col("metric") == metric) & (pl.col("status") == ScoreStatus.INVALID.value))["item_id"]
    return Rule(
        "invalid", metric, Decision.BLOCKED if over else Decision.PASS,
        f"{row['invalid_count']} invalid: {share:.1%}{over}, upper {upper:.1%}",
        f"무효 {row['invalid_count']}건: {share:.1%}{over}, 상한 {upper:.1%}",
        tuple(bad.head(LISTED_ITEMS).to_list()), {"invalid_share": share, "upper": upper, "cap": cap},
    )  # fmt: skip


def _calibration(case: Case, metric: str) -> Rule:
    if metric not in case.judged:
        return Rule("calibration", metric, Decision.PASS, "no judge to calibrate", "보정할 심판이 없습니다")
    found = case.calibrations.filter(
        (pl.col("metric") == metric) & (pl.col("stratum") == ALL) & pl.col("judge_key").is_in(_judge_keys(case, metric))
    )
    if found.is_empty():
        return Rule("calibration", metric, Decision.BLOCKED, "untested judge: 0 labels", "미검증 심판: 라벨 0개")
    row = found.sort("calibrated_at").to_dicts()[-1]
    word = "provisional" if row["is_provisional"] else row["decision"]
    en, ko = REASONS.get(row["reason"], row["reason"]), row["reason"] and in_korean(row["reason"])
    limits = f"rho {number(row['spearman_rho'])}, {{}} {number(row['rho_lower'])}, n {row['pair_count']}"
    needed, needed_ko = "", ""
    if row["labels_needed"] and row["decision"] == CalibrationDecision.UNTESTED.value:
        needed = f"; at least {row['labels_needed']} human labels needed"
        needed_ko = f"; 사람 라벨 {row['labels_needed']}개 이상 필요"
    elif row["labels_needed"]:
        needed, needed_ko = f"; about {row['labels_needed']} labels needed", f"; 라벨 약 {row['labels_needed']}개 필요"
    return Rule(
        "calibration", metric, _trusted(case, row),
        f"{word}{f' ({en})' if en else ''}: {limits.format('lower')}; labels: {row['label_provenance']}{needed}",
        f"{CALIBRATION_KO[word]}{f' ({ko})' if ko else ''}: {limits.format('하한')}; "
        f"라벨: {PROVENANCE_KO.get(row['label_provenance'], row['label_provenance'])}{needed_ko}",
        numbers={name: row[name] for name in CALIBRATION_NUMBERS},
    )  # fmt: skip


def _judge_keys(case: Case, metric: str) -> list[str]:
    """The key that the evaluation recorded for the metric, and those of its scores."""
    keys = json.loads(case.evaluation.get("judge_keys") or "{}")
    own = case.scores.filter(pl.col("metric") == metric)["judge_key"].drop_nulls().unique().to_list()
    return own or [key for name, key in keys.items() if name == metric and key is not None]


def _trusted(case: Case, row: Mapping[str, Any]) -> Decision:
    """What a calibration allows at best. Labels that are not human never certify, whatever the row says."""
    verdict = {
        CalibrationDecision.PASS: Decision.PASS,
        CalibrationDecision.FAIL: Decision.BLOCKED,
        CalibrationDecision.UNTESTED: Decision.BLOCKED,
        CalibrationDecision.INCONCLUSIVE: Decision.PASS_UNPROVEN if row["is_provisional"] else Decision.INCONCLUSIVE,
    }[CalibrationDecision(row["decision"])]
    if row["label_provenance"] != "human":
        return Decision.BLOCKED
    if case.policy_config.require_calibration == "pass" and verdict != Decision.PASS:
        return Decision.BLOCKED
    return verdict


def _demanded(case: Case, metric: str, row: Mapping[str, Any]) -> Iterator[Rule]:
    demands = case.demands(metric)
    if demands.floor is not None:
        yield _floor(metric, row["mean"], row["mean_lower_bound"], demands.floor)
    if demands.cvar10_floor is not None:
        yield _tail(metric, row, _pessimistic(case, metric), demands.cvar10_floor)
    if demands.catastrophic_cap is not None:
        # The summary was made with the metric's own catastrophic level; the lost grades count as reaching it.
        yield _catastrophic(metric, row, _lost(case, metric), demands.catastrophic_cap)


def _pessimistic(case: Case, metric: str) -> Counts:
    """The values with every missing grade the worst, one for each item that has or should have one."""
    counted = [*(status.value for status in SCORED_STATUSES), ScoreStatus.INVALID.value, ScoreStatus.NOT_ASKED.value]
    rows = case.scores.filter(pl.col("metric") == metric).filter(
        pl.col("status").is_in(counted)
        | ((pl.col("status") == ScoreStatus.NO_RESPONSE.value) & pl.col("value").is_not_null())
    )
    return as_counts(rows.select(pl.coalesce("lower", "value", pl.lit(0.0))).to_series().to_numpy())


def _lost(case: Case, metric: str) -> int:
    """Items whose value rests on missing grades, in whole or in part."""
    rows = case.scores.filter(pl.col("metric") == metric)
    unknown = pl.col("status").is_in([ScoreStatus.INVALID.value, ScoreStatus.NOT_ASKED.value])
    return rows.filter(unknown | (pl.col("lower") < pl.col("value"))).height


def _floor(metric: str, mean: float, lower: float, floor: float) -> Rule:
    """On a fixed set the value itself is compared, not its population interval; missing grades count as the worst."""
    numbers = {"mean": mean, "lower_bound": lower, "floor": floor}
    shown = number(floor)
    if mean < floor:
        en, ko = f"mean {number(mean)} < {shown}", f"평균 {number(mean)} < {shown}"
        return Rule("floor", metric, Decision.FAIL, en, ko, numbers=numbers)
    if lower < floor:
        return Rule(
            "floor", metric, Decision.INCONCLUSIVE,
            f"missing grades: mean {number(mean)} meets {shown}, its lower bound {number(lower)} does not",
            f"누락된 등급: 평균 {number(mean)}은 {shown} 이상이지만 하한 {number(lower)}은 미달", numbers=numbers,
        )  # fmt: skip
    en, ko = f"lower bound {number(lower)} >= {shown}", f"하한 {number(lower)} >= {shown}"
    return Rule("floor", metric, Decision.PASS, en, ko, numbers=numbers)


def _tail(metric: str, row: Mapping[str, Any], pessimistic: Counts, floor: float) -> Rule:
    value, lower = row["cvar10"], row["cvar10_lower"]
    worst, worst_case = tuple(row["worst_item_ids"]), cvar(pessimistic).value
    numbers = {"cvar10": value, "lower": lower, "missing_worst": worst_case, "floor": floor}
    shown = f"{number(value)}, {{}} {number(lower)}, {{}} {number(floor)}"
    enough = row["cvar10_status"] == "ok"
    if enough and value < floor:
        return Rule("worst 10%", metric, Decision.FAIL, f"{number(value)} < {number(floor)}",
                    f"{number(value)} < {number(floor)}", worst, numbers)  # fmt: skip
    if pessimistic.n >= TAIL_ITEMS and worst_case is not None and worst_case < floor:
        return Rule(
            "worst 10%", metric, Decision.INCONCLUSIVE,
            f"missing grades: {number(value)}, but {number(worst_case)} < {number(floor)} at the worst",
            f"누락된 등급: {number(value)}, 최악이면 {number(worst_case)} < {number(floor)}", worst, numbers,
        )  # fmt: skip
    if not enough:
        return Rule("worst 10%", metric, Decision.NOT_EVALUATED,
                    f"{number(value)}, but fewer than {TAIL_ITEMS} values: too few to gate",
                    f"{number(value)}, 값이 {TAIL_ITEMS}개 미만이라 판단하기에 부족합니다", worst, numbers)  # fmt: skip
    verdict = Decision.PASS if lower is not None and lower >= floor else Decision.PASS_UNPROVEN
    return Rule("worst 10%", metric, verdict, shown.format("lower", "floor"),
                shown.format("하한", "기준"), worst, numbers)  # fmt: skip


def _catastrophic(metric: str, row: Mapping[str, Any], lost: int, cap: float) -> Rule:
    share, upper = row["catastrophic_share"], row["catastrophic_share_upper"]
    valued = row["scored_count"] + row["no_response_count"]
    with_lost = (share * valued + lost) / max(valued + row["invalid_count"] + row["not_asked_count"], 1)
    verdict = Decision.PASS if upper <= cap else Decision.PASS_UNPROVEN
    note, note_ko = "", ""
    if share > cap:
        verdict = Decision.FAIL
    elif with_lost > cap:
        verdict = Decision.INCONCLUSIVE
        note, note_ko = f"; {with_lost:.1%} if the lost grades were", f"; 잃은 등급이 모두 그렇다면 {with_lost:.1%}"
    return Rule("catastrophic", metric, verdict, f"share {share:.1%}, upper {upper:.1%}, cap {cap:.1%}{note}",
                f"비율 {share:.1%}, 상한 {upper:.1%}, 허용 {cap:.1%}{note_ko}",
                numbers={"share": share, "upper": upper, "cap": cap, "with_lost": with_lost})  # fmt: skip
