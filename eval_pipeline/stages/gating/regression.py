"""Rules about change: each metric against the last comparable evaluations and against the pinned baseline.

Evaluations pair on the item and its content hash, and only under one judge key. A row that lost its grade, or an item
that is gone, leaves the test, which is then repeated with it as the worst: losing a failing item never hides it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eval_pipeline.stages.gating import pairing
from eval_pipeline.stages.gating.case import LISTED_ITEMS, Case, Past, Rule, number, p_value, signed
from eval_pipeline.stats.counts import PairTable
from eval_pipeline.stats.multiplicity import holm
from eval_pipeline.stats.regression_rule import Regression, RegressionVerdict, against_pin, against_window
from eval_pipeline.stats.stat import Stat
from eval_pipeline.stats.tails import cvar_change
from eval_pipeline.vocabulary import Decision, ScoreStatus

SHARED_MINIMUM = 0.9
FAILED_BELOW = 0.5
"""An item is newly failed when its value was at least this and now is below, or is no longer valid."""
ASSUMED_RUN_SD = 0.02
"""Run-to-run sd taken where fewer than 5 runs tell none: a drop beyond what it explains needs no confirmation.

Simulated against one pinned run, 400 nights a cell: at most .02 false alarms at a run sd of .02, .06 at .03."""
Z_95 = 1.6448536269514722


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric against one reference.

    Attributes:
        repeats: the same test with what was lost as the worst, and with the reference's missing grades as the best.
        shared, changed, new: items paired; of the newest reference without an unchanged pair; of this run without one.
        tail: change of the worst 10 % against the newest reference, an alert.
    """

    metric: str
    against: str
    runs: int
    primary: Regression
    repeats: tuple[Regression, ...]
    shared: int
    changed: int
    new: int
    newly_failed: tuple[str, ...]
    improved: int
    tail: Stat | None


def regressions(case: Case) -> list[Rule]:
    """The rules of every gated metric; p values are Holm's over all comparisons."""
    rules: list[Rule] = []
    made: list[Comparison] = []
    for metric in case.gated:
        refused, compared = _compare(case, metric)
        rules += refused
        made += compared
    adjusted = holm([one.primary.test.p for one in made])
    repeated = [
        holm([one.repeats[index].test.p if len(one.repeats) > index else one.primary.test.p for one in made])
        for index in range(2)
    ]
    for position, one in enumerate(made):
        rules.append(_judged(case, one, adjusted[position], [column[position] for column in repeated]))
        rules += _tail_alert(one)
    return rules


def _compare(case: Case, metric: str) -> tuple[list[Rule], list[Comparison]]:
    now = pairing.of_metric(case.scores, metric)
    window = case.references
    references: list[tuple[str, tuple[Past, ...]]] = [("window", window)] if window else []
    if case.pinned is not None:
        references.append(("pin", (case.pinned,)))
    if not references:
        return [Rule("regression", metric, Decision.NOT_EVALUATED, "no earlier evaluation", "이전 평가가 없습니다")], []
    rules, made, limit = [], [], None
    keys = pairing.judge_keys(now)
    for name, past in references:
        found = [frame for one in past if (frame := pairing.of_metric(one.scores, metric)).height]
        same = [frame for frame in found if pairing.judge_keys(frame) == keys]
        usable = [frame for frame in same if pairing.shared_share(now, frame) >= SHARED_MINIMUM][-case.gate.window :]
        if not same:
            rules.append(_other_judge(case, metric, name, keys) if found else _new_metric(metric, name))
        elif not usable:
            rules.append(_other_items(metric, name, now, same[-1]))
        else:
            made.append(_comparison(case, metric, name, now, usable, limit=limit))
            limit = made[-1].primary.limit
    if not any(rule.verdict == Decision.BLOCKED for rule in rules) and not case.is_of_record(metric, keys):
        rules.append(_not_of_record(metric))
    return rules, made


def _not_of_record(metric: str) -> Rule:
    """Nights by the new judge do not make it the judge of record, however many there are."""
    return Rule(
        "judge", metric, Decision.BLOCKED,
        "the judge, its prompts or the metric changed and are not accepted yet: see `judges compare`, then `judges accept`",
        "심판, 프롬프트 또는 지표가 바뀌었고 아직 승인되지 않았습니다. `judges compare`로 본 뒤 `judges accept`를 실행하세요",
    )  # fmt: skip


def _new_metric(metric: str, name: str) -> Rule:
    return Rule(f"regression ({name})", metric, Decision.NOT_EVALUATED, "the metric is new", "새 지표입니다")


def _other_items(metric: str, name: str, now: pl.DataFrame, past: pl.DataFrame) -> Rule:
    share = pairing.shared_share(now, past)
    count = round(share * max(now.height, past.height))
    return Rule(
        f"regression ({name})", metric, Decision.BLOCKED,
        f"the dataset changed: only {count} items are shared and unchanged ({share:.0%} < {SHARED_MINIMUM:.0%})",
        f"데이터셋이 바뀜: 그대로인 공통 항목이 {count}개뿐입니다({share:.0%} < {SHARED_MINIMUM:.0%})",
        numbers={"shared": count, "share": share},
    )  # fmt: skip


def _other_judge(case: Case, metric: str, name: str, keys: set[Any]) -> Rule:
    if keys <= case.accepted_judges:
        return Rule(f"regression ({name})", metric, Decision.NOT_EVALUATED,
                    "new series: the judge was changed and accepted", "새 계열: 심판 교체가 승인되었습니다")  # fmt: skip
    return Rule(
        f"regression ({name})", metric, Decision.BLOCKED,
        "no comparable baseline: the judge, its prompts or the metric changed without an accepted parallel baseline; "
        "run `judges compare`, then `judges accept`",
        "비교할 기준선이 없음: 심판, 프롬프트 또는 지표가 병렬 기준선 승인 없이 바뀌었습니다. "
        "`judges compare` 후 `judges accept`를 실행하세요",
    )  # fmt: skip


def _comparison(
    case: Case, metric: str, name: str, now: pl.DataFrame, past: Sequence[pl.DataFrame], *, limit: Stat | None
) -> Comparison:
    aligned, count, demands = pairing.aligned(now, past), len(past), case.demands(metric)
    old = [aligned[f"value_{index}"].to_numpy() for index in range(count)]

    def test(window: Sequence[Any], values: pl.Series) -> Regression:
        alpha, effect = case.policy_config.alpha, demands.minimum_effect
        if name == "pin":
            return against_pin(window[0], values.to_numpy(), limit=limit, alpha=alpha, minimum_effect=effect)
        floor = case.noise_floors.get(metric, 0.0)
        return against_window(window, values.to_numpy(), alpha=alpha, minimum_effect=effect, noise_floor=floor)

    worst = aligned.select(pl.coalesce("lower", "value", pl.lit(0.0))).to_series()
    gone_or_lost = ((aligned["value"].is_null()) | (worst < aligned["value"])).any()
    best = [aligned.select(pairing.best(index)).to_series().to_numpy() for index in range(count)]
    unsure = any(aligned[f"status_{index}"].is_in(pairing.LOST).any() for index in range(count))
    repeats = [test(old, worst)] if gone_or_lost else []
    if unsure:
        repeats = [*(repeats or [test(old, aligned["value"])]), test(best, worst)]
    last, value = pl.col(f"value_{count - 1}"), pl.col("value")
    invalid = pl.col("status").is_in([*pairing.LOST, ScoreStatus.NO_RESPONSE.value]) & value.is_null()
    failed = aligned.filter((last >= FAILED_BELOW) & (invalid | (value < FAILED_BELOW)))
    paired = aligned.filter(value.is_not_null() & last.is_not_null())
    shared = aligned.filter(pl.col("status").is_not_null() & pl.col(f"status_{count - 1}").is_not_null()).height
    return Comparison(
        metric, name, count, test(old, aligned["value"]), tuple(repeats), shared, past[-1].height - shared,
        now.height - shared, tuple(failed["item_id"].sort().to_list()),
        aligned.filter((last < FAILED_BELOW) & (value >= FAILED_BELOW)).height,
        _tail_change(paired[f"value_{count - 1}"], paired["value"]),
    )  # fmt: skip


def _tail_change(old: pl.Series, new: pl.Series) -> Stat | None:
    table = PairTable.from_rows(old.to_numpy(), new.to_numpy())
    return cvar_change(table) if table.n >= 100 and len(table.counts) <= 100 else None


def _verdict(case: Case, one: Comparison, result: Regression, p: float | None) -> RegressionVerdict:
    """The combined rule; with too few runs for it, a drop that no run-to-run noise explains, or a confirmed one."""
    said = result.decided_at(p, case.policy_config.alpha, case.demands(one.metric).minimum_effect)
    if said != "needs_confirmation" or result.effect.value is None:
        return said
    beyond = Z_95 * ASSUMED_RUN_SD * math.sqrt(1 + 1 / one.runs)
    return "regression" if -result.effect.value > beyond or one.metric in case.confirmed else said


def _judged(case: Case, one: Comparison, p: float | None, repeated: Sequence[float | None]) -> Rule:
    margin, effect = case.demands(one.metric).margin, one.primary.effect
    said = _verdict(case, one, one.primary, p)
    again = [_verdict(case, one, result, q) for result, q in zip(one.repeats, repeated, strict=False)]
    detectable, limit = one.primary.detectable, one.primary.limit
    shown = shown_ko = f"{signed(effect.value)}, p {p_value(p)}"
    if said == "regression" and limit.lower is not None:
        shown, shown_ko = (
            f"{shown}, below expected {number(limit.lower)}",
            f"{shown_ko}, 예상 하한 {number(limit.lower)} 미만",
        )
    if "no case changed" in effect.notes:
        shown, shown_ko = "no item changed", "바뀐 항목 없음"
    else:
        shown, shown_ko = f"{shown}; MDE {number(detectable)}", f"{shown_ko}; MDE {number(detectable)}"
    if said == "regression":
        verdict, en, ko = Decision.FAIL, f"regression {shown}", f"하락 {shown_ko}"
    elif said == "undefined":
        verdict, en, ko = Decision.BLOCKED, f"nothing to compare: {one.primary.reason}", "비교할 값이 없음"
    elif said == "needs_confirmation":
        verdict = Decision.INCONCLUSIVE
        en = f"looks like a regression {shown}; {one.primary.reason}: judge both sides once more to confirm"
        ko = f"하락으로 보임 {shown_ko}; 평가 {limit.n}회로는 부족함: 양쪽을 한 번 더 채점해 확인하세요"
    elif "regression" in again:
        verdict = Decision.INCONCLUSIVE
        en = f"no regression {shown}, but one if what is missing were the worst"
        ko = f"하락 없음 {shown_ko}, 단 빠진 것이 최악이면 하락"
    elif effect.lower is not None and effect.lower >= -margin:
        verdict, en = Decision.PASS, f"not worse by {number(margin)}: {shown}"
        ko = f"{number(margin)} 이상 나빠지지 않음: {shown_ko}"
    else:
        verdict, en, ko = Decision.PASS_UNPROVEN, f"no regression found: {shown}", f"하락을 찾지 못함: {shown_ko}"
        if detectable is not None and detectable > margin:
            en += f"; this set cannot show {number(margin)}"
            ko += f"; 이 데이터셋으로는 {number(margin)} 차이를 볼 수 없음"
    en, ko = f"{en} ({_against(one)})", f"{ko} ({_against_ko(one)})"
    return Rule(f"regression ({one.against})", one.metric, verdict, en, ko, one.newly_failed[:LISTED_ITEMS],
                _numbers(case, one, p))  # fmt: skip


def _against(one: Comparison) -> str:
    text = "against the pinned baseline" if one.against == "pin" else f"against the last {one.runs}"
    edited = one.changed or one.new
    return text + (f"; {one.shared} shared, {one.changed} changed or gone, {one.new} new" if edited else "")


def _against_ko(one: Comparison) -> str:
    text = "고정 기준선 대비" if one.against == "pin" else f"직전 {one.runs}회 대비"
    edited = one.changed or one.new
    return text + (f"; 공통 {one.shared}, 변경 또는 삭제 {one.changed}, 추가 {one.new}" if edited else "")


def _numbers(case: Case, one: Comparison, p: float | None) -> dict[str, Any]:
    return {
        "effect": one.primary.effect.to_dict(), "p": one.primary.test.p, "p_holm": p, "alpha": case.policy_config.alpha,
        "limit": one.primary.limit.to_dict(), "detectable": one.primary.detectable, "against": one.against,
        "runs": one.runs, "shared_count": one.shared, "changed_count": one.changed, "new_count": one.new,
        "newly_failed_count": len(one.newly_failed), "improved_count": one.improved,
        "cvar10_change": one.tail.to_dict() if one.tail else None,
    }  # fmt: skip


def _tail_alert(one: Comparison) -> list[Rule]:
    """Printed only when the worst 10 % clearly fell; keeps the decision from more than PASS_UNPROVEN, fails nothing."""
    if one.tail is None or one.tail.upper is None or one.tail.value is None or one.tail.upper >= 0:
        return []
    shown = f"{signed(one.tail.value)} ({number(one.tail.lower)} .. {number(one.tail.upper)})"
    return [Rule(f"worst 10% change ({one.against})", one.metric, Decision.PASS_UNPROVEN, f"the worst 10% fell {shown}",
                 f"하위 10 %가 하락 {shown}", numbers={"cvar10_change": one.tail.to_dict()})]  # fmt: skip
