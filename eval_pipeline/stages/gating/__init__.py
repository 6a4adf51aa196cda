"""The gate: rules over one evaluation, each with its verdict and evidence, and the decision they come to.

Comparability first. A rule that cannot be evaluated never counts as passed, and losing a failing item never turns FAIL
into PASS. The rules are in `whole`, `levels` and `regression`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from eval_pipeline.config import PolicyConfig
from eval_pipeline.stages.gating import canary
from eval_pipeline.stages.gating.case import ALL, LISTED_ITEMS, Case, Gate, Past, Rule, number, signed
from eval_pipeline.stages.gating.levels import levels
from eval_pipeline.stages.gating.regression import regressions
from eval_pipeline.stages.gating.whole import whole
from eval_pipeline.tables import GATE_DECISIONS
from eval_pipeline.vocabulary import RULES_KO, Decision, Policy

__all__ = ["Case", "Gate", "Past", "Rule", "decide", "exit_code", "overall", "rows"]

SEVERITY = (Decision.PASS, Decision.PASS_UNPROVEN, Decision.INCONCLUSIVE, Decision.FAIL, Decision.BLOCKED)


def decide(case: Case) -> Gate:
    """Applies every rule. A proven FAIL is among the rules also when another rule blocks."""
    rules = [*whole(case), *canary.rules(case)]
    for metric in case.gated:
        rules += levels(case, metric)
    rules += regressions(case)
    decision = overall([rule.verdict for rule in rules])
    return Gate(decision, exit_code(decision, case.policy_config), (*rules, *_reported(case)))


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
    return GATE_DECISIONS.frame(
        {
            "evaluation_id": evaluation_id, "policy": policy.value, "rule": rule.rule, "metric": rule.metric,
            "verdict": rule.verdict.value, "evidence": rule.evidence, "evidence_ko": rule.evidence_ko.replace("undefined", "정의되지 않음"),
            "item_ids": list(rule.item_ids), "numbers": json.dumps(rule.numbers, sort_keys=True), "decided_at": now,
        }
        for rule in (_decision(gate), *gate.rules)
    )  # fmt: skip


def _decision(gate: Gate) -> Rule:
    """The whole as a row: what got worse first, then why, and the items that newly fail."""
    worse = [rule for rule in gate.rules if rule.rule.startswith("regression") and rule.verdict == Decision.FAIL]
    reasons = [rule for rule in gate.rules if rule.verdict == gate.decision and rule not in worse]
    en, ko = [], []
    if worse:
        named = ", ".join(dict.fromkeys(f"{r.metric} {signed(r.numbers['effect']['value'])}" for r in worse))
        en, ko = [f"Answers got worse: {named}"], [f"답변이 나빠짐: {named}"]
    en += [f"{rule.rule} {rule.metric}: {rule.evidence}" for rule in reasons[:3]]
    ko += [f"{_rule_ko(rule.rule)} {rule.metric}: {rule.evidence_ko}" for rule in reasons[:3]]
    items = tuple(dict.fromkeys(item for rule in worse for item in rule.item_ids))[:LISTED_ITEMS]
    return Rule("decision", ALL, gate.decision, "; ".join(en), "; ".join(ko), items)


def _rule_ko(rule: str) -> str:
    name, _, against = rule.partition(" (")
    return (
        f"{RULES_KO.get(name, name)} ({RULES_KO.get(against[:-1], against[:-1])})"
        if against
        else RULES_KO.get(name, name)
    )


def _reported(case: Case) -> list[Rule]:
    """Metrics that do not decide are shown with their mean."""
    others = case.summaries.filter((pl.col("stratum") == ALL) & ~pl.col("metric").is_in(list(case.gated)))
    return [
        Rule("reported", metric, Decision.NOT_EVALUATED, f"reported, not gated: mean {number(mean)}",
             f"게이트 제외, 보고만: 평균 {number(mean)}")
        for metric, mean in others.select("metric", "mean").sort("metric").iter_rows()
    ]  # fmt: skip
