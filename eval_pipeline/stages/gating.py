"""The gate: rules over one evaluation, each with its verdict and evidence, and the decision they come to.

Comparability first. A rule that cannot be evaluated never counts as passed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from eval_pipeline.config import GateConfig, GateMetricConfig, PolicyConfig
from eval_pipeline.stats.multiplicity import holm
from eval_pipeline.stats.rates import clopper_pearson
from eval_pipeline.stats.regression_rule import Regression, against_pin, against_window
from eval_pipeline.tables import GATE_DECISIONS
from eval_pipeline.vocabulary import CalibrationDecision, Decision, Policy, ScoreStatus

ALL = "all"
SHARED_MINIMUM = 0.9
FAILED_BELOW = 0.5
"""An item is newly failed when its value was at least this and now is below, or is no longer valid."""
SEVERITY = (Decision.PASS, Decision.PASS_UNPROVEN, Decision.INCONCLUSIVE, Decision.FAIL, Decision.BLOCKED)


@dataclass(frozen=True, slots=True)
class Rule:
    """The verdict of one rule, with its evidence in both languages."""

    rule: str
    metric: str
    verdict: Decision
    evidence: str
    evidence_ko: str
    item_ids: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier evaluation to compare with: its `scores` rows (or a pinned baseline's, of the same columns)."""

    evaluation_id: str
    scores: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Case:
    """Everything the gate looks at.

    Attributes:
        gated: metrics that decide; others are only reported.
        judged: metrics that ask a judge, so need a calibration.
        accepted_judges: judge keys accepted by a recorded decision, after a parallel baseline.
        rot: remarks about content that differs from its tag; empty when there are none.
        window: earlier complete evaluations of this system and dataset, oldest first, replays left out.
        pinned: the pinned baseline, or null.
    """

    evaluation: Mapping[str, Any]
    scores: pl.DataFrame
    summaries: pl.DataFrame
    calibrations: pl.DataFrame
    gate: GateConfig
    policy: Policy
    gated: tuple[str, ...]
    judged: tuple[str, ...]
    accepted_judges: frozenset[str] = frozenset()
    rot: tuple[str, ...] = ()
    window: tuple[Past, ...] = ()
    pinned: Past | None = None

    @property
    def policy_config(self) -> PolicyConfig:
        return self.gate.policy(self.policy)

    def demands(self, metric: str) -> GateMetricConfig:
        return self.gate.metrics.get(metric, GateMetricConfig())


@dataclass(frozen=True, slots=True)
class Gate:
    """The decision with all rules."""

    decision: Decision
    exit_code: int
    rules: tuple[Rule, ...]


def decide(case: Case) -> Gate:
    """Applies every rule. A proven FAIL is among the rules also when another rule blocks."""
    rules = [*_whole(case)]
    for metric in case.gated:
        rules += [_invalid(case, metric), _calibration(case, metric), *_levels(case, metric)]
    rules += _regressions(case)
    decision = overall([rule.verdict for rule in rules])
    return Gate(decision, exit_code(decision, case.policy_config), tuple(rules))


def overall(verdicts: Sequence[Decision]) -> Decision:
    """The worst verdict; nothing evaluated blocks, and a rule not evaluated keeps it from more than PASS_UNPROVEN."""
    decided = [verdict for verdict in verdicts if verdict != Decision.NOT_EVALUATED]
    if not decided:
        return Decision.BLOCKED
    worst = max(decided, key=SEVERITY.index)
    return Decision.PASS_UNPROVEN if worst == Decision.PASS and Decision.NOT_EVALUATED in verdicts else worst


def exit_code(decision: Decision, policy: PolicyConfig) -> int:
    """0 pass, 1 FAIL, 3 BLOCKED, 4 INCONCLUSIVE; 0 for what the policy does not fail on or does not enforce."""
    codes = {Decision.FAIL: 1, Decision.BLOCKED: 3, Decision.INCONCLUSIVE: 4}
    return codes.get(decision, 0) if policy.enforce and decision in policy.fail_on else 0


def rows(gate: Gate, evaluation_id: str, policy: Policy, now: datetime) -> pl.DataFrame:
    """`gate_decisions` rows: the decision first, then each rule."""
    reasons = [rule for rule in gate.rules if rule.verdict == gate.decision] or list(gate.rules[:1])
    whole = Rule("decision", ALL, gate.decision, "; ".join(f"{r.rule} {r.metric}: {r.evidence}" for r in reasons[:3]),
                 "; ".join(f"{r.rule} {r.metric}: {r.evidence_ko}" for r in reasons[:3]))  # fmt: skip
    return GATE_DECISIONS.frame(
        {
            "evaluation_id": evaluation_id, "policy": policy.value, "rule": rule.rule, "metric": rule.metric,
            "verdict": rule.verdict.value, "evidence": rule.evidence, "evidence_ko": rule.evidence_ko,
            "item_ids": list(rule.item_ids), "numbers": json.dumps(rule.numbers, sort_keys=True), "decided_at": now,
        }
        for rule in (whole, *gate.rules)
    )  # fmt: skip


# Rules about the whole evaluation ------------------------------------------------------------------------------------


def _whole(case: Case) -> list[Rule]:
    row = case.evaluation
    found = []
    if not row["item_count"] or not case.gated or case.scores.is_empty():
        found.append(Rule("complete", ALL, Decision.BLOCKED, "nothing to decide on: no items or no gated metric",
                          "판단할 것이 없음: 항목이나 게이트 대상 지표가 없습니다"))  # fmt: skip
    elif row["is_partial"]:
        found.append(Rule("complete", ALL, Decision.BLOCKED, f"partial: {row['partial_reason']}", f"부분 결과: {row['partial_reason']}"))
    if case.rot:
        found.append(Rule("dataset", ALL, Decision.BLOCKED, "; ".join(case.rot[:3]), "; ".join(case.rot[:3])))
    return [*found, _responses(case)]


def _responses(case: Case) -> Rule:
    failed = case.scores.filter(pl.col("status") == ScoreStatus.NO_RESPONSE.value)["item_id"].unique().sort().to_list()
    total = int(case.evaluation["item_count"])
    cap = case.gate.max_failed_response_share
    if not total:
        return Rule("responses", ALL, Decision.NOT_EVALUATED, "no items", "항목 없음")
    share = clopper_pearson(len(failed), total, sided="one")
    assert share.value is not None
    over = share.value > cap
    text = f"{len(failed)} failed of {total}: {share.value:.1%}, upper {share.upper:.1%}"
    return Rule(
        "responses", ALL, Decision.BLOCKED if over else Decision.PASS,
        f"{text} > {cap:.0%}" if over else text,
        f"{total}건 중 {len(failed)}건 실패: {share.value:.1%}, 상한 {share.upper:.1%}" + (f" > {cap:.0%}" if over else ""),
        tuple(failed), {"failed_count": len(failed), "item_count": total, "cap": cap},
    )  # fmt: skip


# Rules about one metric ----------------------------------------------------------------------------------------------


def _summary(case: Case, metric: str) -> dict[str, Any] | None:
    found = case.summaries.filter((pl.col("metric") == metric) & (pl.col("stratum") == ALL)).to_dicts()
    return found[0] if found else None


def _invalid(case: Case, metric: str) -> Rule:
    row, cap = _summary(case, metric), case.gate.max_invalid_share
    if row is None or row["mean"] is None:
        return Rule("invalid", metric, Decision.BLOCKED, "nothing was scored", "점수가 하나도 없습니다")
    share = row["invalid_share"]
    if share is None:
        return Rule("invalid", metric, Decision.NOT_EVALUATED, "no question was asked", "물어본 질문이 없습니다")
    over = share > cap
    bad = case.scores.filter((pl.col("metric") == metric) & (pl.col("status") == ScoreStatus.INVALID.value))
    text, text_ko = f"{row['invalid_count']} invalid: {share:.1%}", f"무효 {row['invalid_count']}건: {share:.1%}"
    suffix = f" > {cap:.0%}" if over else ""
    return Rule("invalid", metric, Decision.BLOCKED if over else Decision.PASS, text + suffix, text_ko + suffix,
                tuple(bad["item_id"].to_list()), {"invalid_share": share, "cap": cap})  # fmt: skip


def _calibration(case: Case, metric: str) -> Rule:
    if metric not in case.judged:
        return Rule("calibration", metric, Decision.PASS, "no judge to calibrate", "보정할 심판이 없습니다")
    found = case.calibrations.filter((pl.col("metric") == metric) & (pl.col("stratum") == ALL)).to_dicts()
    if not found:
        return Rule("calibration", metric, Decision.BLOCKED, "untested judge: 0 labels", "미검증 심판: 라벨 0개")
    row = found[-1]
    needs_pass = case.policy_config.require_calibration == "pass"
    verdict = {
        CalibrationDecision.PASS: Decision.PASS,
        CalibrationDecision.FAIL: Decision.BLOCKED,
        CalibrationDecision.UNTESTED: Decision.BLOCKED,
        CalibrationDecision.INCONCLUSIVE: Decision.PASS_UNPROVEN if row["is_provisional"] else Decision.INCONCLUSIVE,
    }[CalibrationDecision(row["decision"])]
    if needs_pass and verdict != Decision.PASS:
        verdict = Decision.BLOCKED
    word = "provisional" if row["is_provisional"] else row["decision"]
    numbers = f"rho {_number(row['spearman_rho'])}, lower {_number(row['rho_lower'])}, n {row['pair_count']}"
    numbers_ko = f"rho {_number(row['spearman_rho'])}, 하한 {_number(row['rho_lower'])}, n {row['pair_count']}"
    why = f" ({row['reason']})" if row["reason"] else ""
    return Rule("calibration", metric, verdict, f"{word}{why}: {numbers}; labels: {row['label_provenance']}",
                f"{word}{why}: {numbers_ko}; 라벨: {row['label_provenance']}")  # fmt: skip


def _levels(case: Case, metric: str) -> list[Rule]:
    row, demands = _summary(case, metric), case.demands(metric)
    if row is None or row["mean"] is None:
        return []
    found = []
    if demands.floor is not None:
        found.append(_floor(metric, row["mean"], row["mean_lower_bound"], demands.floor))
    if demands.cvar10_floor is not None:
        found.append(_tail(metric, row, demands.cvar10_floor))
    if demands.catastrophic_cap is not None:
        share, upper = row["catastrophic_share"], row["catastrophic_share_upper"]
        over = share > demands.catastrophic_cap
        verdict = Decision.FAIL if over else Decision.PASS if upper <= demands.catastrophic_cap else Decision.PASS_UNPROVEN
        found.append(Rule("catastrophic", metric, verdict, f"share {share:.1%}, upper {upper:.1%}, cap {demands.catastrophic_cap:.1%}",
                          f"비율 {share:.1%}, 상한 {upper:.1%}, 허용 {demands.catastrophic_cap:.1%}"))  # fmt: skip
    return found


def _floor(metric: str, mean: float, lower: float, floor: float) -> Rule:
    """On a fixed set the value itself is compared, not its population interval; missing grades count as the worst."""
    if mean < floor:
        return Rule("floor", metric, Decision.FAIL, f"mean {_number(mean)} < {floor:g}", f"평균 {_number(mean)} < {floor:g}")
    if lower < floor:
        return Rule("floor", metric, Decision.INCONCLUSIVE,
                    f"missing grades: mean {_number(mean)} meets {floor:g}, its lower bound {_number(lower)} does not",
                    f"누락된 등급: 평균 {_number(mean)}은 {floor:g} 이상이지만 하한 {_number(lower)}은 미달")  # fmt: skip
    return Rule("floor", metric, Decision.PASS, f"lower bound {_number(lower)} >= {floor:g}", f"하한 {_number(lower)} >= {floor:g}")


def _tail(metric: str, row: Mapping[str, Any], floor: float) -> Rule:
    value, lower = row["cvar10"], row["cvar10_lower"]
    worst = tuple(row["worst_item_ids"])
    if row["cvar10_status"] != "ok":
        return Rule("worst 10%", metric, Decision.NOT_EVALUATED, f"{_number(value)}, but fewer than 100 values: too few to gate",
                    f"{_number(value)}, 값이 100개 미만이라 판단하기에 부족합니다", worst)  # fmt: skip
    if value < floor:
        return Rule("worst 10%", metric, Decision.FAIL, f"worst 10% {_number(value)} < {floor:.2f}",
                    f"하위 10 % {_number(value)} < {floor:.2f}", worst)  # fmt: skip
    verdict = Decision.PASS if lower is not None and lower >= floor else Decision.PASS_UNPROVEN
    return Rule("worst 10%", metric, verdict, f"worst 10% {_number(value)}, lower {_number(lower)}, floor {floor:.2f}",
                f"하위 10 % {_number(value)}, 하한 {_number(lower)}, 기준 {floor:.2f}", worst)  # fmt: skip


# Regression ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One metric against one reference, with the pessimistic repeat."""

    metric: str
    against: str
    primary: Regression
    pessimistic: Regression | None
    newly_failed: tuple[str, ...]
    text: str


def _regressions(case: Case) -> list[Rule]:
    rules: list[Rule] = []
    comparisons: list[_Comparison] = []
    for metric in case.gated:
        refused, made = _compare(case, metric)
        rules += refused
        comparisons += made
    adjusted = holm([one.primary.test.p for one in comparisons])
    repeated = holm([one.pessimistic.test.p if one.pessimistic else one.primary.test.p for one in comparisons])
    return rules + [_judged(case, *one) for one in zip(comparisons, adjusted, repeated, strict=True)]


def _compare(case: Case, metric: str) -> tuple[list[Rule], list[_Comparison]]:
    now = _of(case.scores, metric)
    references = [("window", case.window)] if case.window else []
    if case.pinned is not None:
        references.append(("pin", (case.pinned,)))
    if not references:
        return [Rule("regression", metric, Decision.NOT_EVALUATED, "no earlier evaluation", "이전 평가가 없습니다")], []
    rules, made = [], []
    keys = set(now["judge_key"].to_list())
    for name, past in references:
        same = [_of(one.scores, metric) for one in past]
        usable = [one for one in same if one.height and set(one["judge_key"].to_list()) == keys]
        if not usable:
            rules.append(_incomparable(case, metric, name, keys, any(one.height for one in same)))
            continue
        joined = _joined(now, usable[-case.gate.window :])
        shared = joined.height / max(now.height, max(one.height for one in usable), 1)
        if shared < SHARED_MINIMUM:
            rules.append(Rule(f"regression ({name})", metric, Decision.BLOCKED,
                              f"only {joined.height} items are shared and unchanged ({shared:.0%} < {SHARED_MINIMUM:.0%})",
                              f"그대로인 공통 항목이 {joined.height}개뿐입니다({shared:.0%} < {SHARED_MINIMUM:.0%})"))  # fmt: skip
            continue
        made.append(_comparison(case, metric, name, joined, len(usable[-case.gate.window :])))
    return rules, made


def _incomparable(case: Case, metric: str, name: str, keys: set[Any], existed: bool) -> Rule:
    if not existed:
        return Rule(f"regression ({name})", metric, Decision.NOT_EVALUATED, "the metric is new", "새 지표입니다")
    if keys <= case.accepted_judges:
        return Rule(f"regression ({name})", metric, Decision.NOT_EVALUATED, "new series: the judge was changed and accepted",
                    "새 계열: 심판 교체가 승인되었습니다")  # fmt: skip
    return Rule(f"regression ({name})", metric, Decision.BLOCKED,
                "no comparable baseline: the judge, its prompts or the metric changed without an accepted parallel baseline; "
                "run `judges compare`, then `judges accept`",
                "비교할 기준선이 없음: 심판, 프롬프트 또는 지표가 병렬 기준선 승인 없이 바뀌었습니다. "
                "`judges compare` 후 `judges accept`를 실행하세요")  # fmt: skip


def _of(scores: pl.DataFrame, metric: str) -> pl.DataFrame:
    wanted = ["item_id", "item_sha256", "judge_key", "status", "value", "lower", "upper"]
    return scores.filter(pl.col("metric") == metric).select(wanted)


def _joined(now: pl.DataFrame, past: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Unchanged items that all have, with the new and each old value and bound."""
    whole = now
    for index, one in enumerate(past):
        old = one.select("item_id", "item_sha256", *(pl.col(name).alias(f"{name}_{index}") for name in ("value", "upper")))
        whole = whole.join(old, on=["item_id", "item_sha256"], how="inner")
    return whole.sort("item_id")


def _comparison(case: Case, metric: str, name: str, joined: pl.DataFrame, count: int) -> _Comparison:
    demands, alpha = case.demands(metric), case.policy_config.alpha
    new = joined["value"].to_list()
    old = [joined[f"value_{index}"].to_list() for index in range(count)]
    lost = joined.filter(pl.col("value").is_null() & pl.any_horizontal(pl.col(f"value_{i}").is_not_null() for i in range(count)))
    # An item that lost its grade counts as the worst, a reference that had none as the best.
    worst = [low if value is None else value for value, low in zip(new, joined["lower"].fill_null(0.0), strict=True)]
    best = [[up if v is None else v for v, up in zip(run, joined[f"upper_{i}"].fill_null(1.0), strict=True)] for i, run in enumerate(old)]

    def test(window: list[list[float | None]], values: list[float | None]) -> Regression:
        if name == "pin":
            return against_pin(window[0], values, alpha=alpha, minimum_effect=demands.minimum_effect)
        return against_window(window, values, alpha=alpha, minimum_effect=demands.minimum_effect)

    primary = test(old, new)
    last = joined[f"value_{count - 1}"]
    failed = joined.filter((last >= FAILED_BELOW) & (pl.col("value").is_null() | (pl.col("value") < FAILED_BELOW)))
    text = f"against the last {count}" if name == "window" else "against the pinned baseline"
    return _Comparison(metric, name, primary, test(best, worst) if lost.height else None, tuple(failed["item_id"].to_list()), text)  # pyright: ignore


def _judged(case: Case, one: _Comparison, p: float | None, repeated_p: float | None) -> Rule:
    demands, alpha = case.demands(one.metric), case.policy_config.alpha
    said = one.primary.decided_at(p, alpha, demands.minimum_effect)
    again = one.pessimistic.decided_at(repeated_p, alpha, demands.minimum_effect) if one.pessimistic else said
    effect, detectable = one.primary.effect, one.primary.detectable
    shown = f"{_signed(effect.value)}, p {_p(p)}; MDE {_number(detectable)}"
    if said == "regression":
        verdict, text, text_ko = Decision.FAIL, f"regression {shown}", f"하락 {shown}"
    elif said in {"needs_confirmation", "undefined"}:
        verdict, text, text_ko = Decision.INCONCLUSIVE, f"{said}: {shown}; {one.primary.reason}", f"{said}: {shown}"
    elif again == "regression":
        verdict, text, text_ko = Decision.INCONCLUSIVE, f"no regression {shown}, but one if the lost grades were the worst", (
            f"하락 없음 {shown}, 단 잃은 등급이 최악이면 하락"
        )
    elif effect.lower is not None and effect.lower >= -demands.margin:
        verdict, text, text_ko = Decision.PASS, f"not worse by more than {demands.margin:g}: {shown}", f"{demands.margin:g}보다 나빠지지 않음: {shown}"
    else:
        verdict = Decision.PASS_UNPROVEN
        text, text_ko = f"no regression found: {shown}", f"하락을 찾지 못함: {shown}"
        if detectable is not None and detectable > demands.margin:
            text += f"; this set cannot show {demands.margin:g}"
            text_ko += f"; 이 데이터셋으로는 {demands.margin:g} 차이를 볼 수 없음"
    numbers = {"effect": effect.to_dict(), "p_holm": p, "alpha": alpha, "detectable": detectable, "against": one.text}
    return Rule(f"regression ({one.against})", one.metric, verdict, f"{text} ({one.text})", text_ko, one.newly_failed, numbers)


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("0.", ".", 1) if 0 <= value < 1 else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.3f}".replace("0.", ".", 1)


def _p(value: float | None) -> str:
    return "undefined" if value is None else "<.001" if value < 0.001 else f"{value:.3f}".lstrip("0")
