"""What the gate says of nights whose right answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scenario
from scenario import METRIC, base, calibration, case, evaluation, flaky, scores, window

from eval_pipeline.stages.gating import Gate, Past, decide, rows
from eval_pipeline.vocabulary import Decision, Policy, ScoreStatus

GOOD = base()


def verdicts(gate: Gate, rule: str, metric: str = METRIC) -> list[str]:
    return [str(found.verdict) for found in gate.rules if found.rule == rule and found.metric == metric]


def evidence(gate: Gate, rule: str) -> str:
    return " | ".join(found.evidence for found in gate.rules if found.rule == rule)


def worse(values: np.ndarray, count: int) -> tuple[np.ndarray, list[int]]:
    """The first `count` good items now score 0."""
    hit = np.flatnonzero(values >= 0.75)[:count].tolist()
    changed = values.copy()
    changed[hit] = 0.0
    return changed, hit


# Change --------------------------------------------------------------------------------------------------------------


def test_an_honest_regression_fails_and_names_the_newly_failed_items() -> None:
    # 20 of 300 items fall from at least .75 to 0: the mean drops by at least 20 * .75 / 300 = .05.
    bad, hit = worse(GOOD, 20)
    gate = decide(case(scores(bad), window=window(GOOD)))
    assert (gate.decision, gate.exit_code) == (Decision.FAIL, 1)
    rule = next(found for found in gate.rules if found.rule == "regression (window)")
    assert set(rule.item_ids) >= {f"q{index:04d}" for index in hit}
    assert rule.numbers["effect"]["value"] < -0.05
    assert "below expected" in rule.evidence and "MDE" in rule.evidence and "하락" in rule.evidence_ko


def test_judge_noise_does_not_fail() -> None:
    nights = window(GOOD)
    decisions = [decide(case(scores(flaky(GOOD, 0.05, seed)), window=nights)).decision for seed in range(40)]
    # Nominal at most .05 of 40 nights; more than 6 would have probability under .005.
    assert decisions.count(Decision.FAIL) <= 6


def test_an_unchanged_system_passes() -> None:
    gate = decide(case(scores(flaky(GOOD, 0.05, 1)), window=window(GOOD)))
    assert (gate.decision, gate.exit_code) == (Decision.PASS, 0)


def test_a_tail_collapse_with_an_unchanged_mean_is_caught() -> None:
    # 12 items fall from 1 to 0 and 48 rise from .75 to 1: 12 * 1 = 48 * .25, so the mean is the same.
    old = np.array([1.0] * 200 + [0.75] * 100)
    new = old.copy()
    new[:12], new[200:248] = 0.0, 1.0
    assert new.mean() == old.mean()
    floor = {"metrics": {METRIC: {"cvar10_floor": 0.7}}}
    gate = decide(case(scores(new), window=window(old, share=0.0), gate=floor))
    # Worst 30 of 300: twelve zeros and eighteen at .75: 13.5 / 30 = .45 < .7, where it was .75.
    assert (gate.decision, verdicts(gate, "worst 10%")) == (Decision.FAIL, ["FAIL"])
    assert ".450 < .700" in evidence(gate, "worst 10%")
    before = decide(case(scores(old), window=window(old, share=0.0), gate=floor))
    assert verdicts(before, "worst 10%") == ["PASS_UNPROVEN"]


def test_a_tail_collapse_is_alerted_without_a_floor_too() -> None:
    old = np.array([1.0] * 200 + [0.75] * 100)
    new = old.copy()
    new[:12], new[200:248] = 0.0, 1.0
    gate = decide(case(scores(new), window=window(old, share=0.0)))
    assert verdicts(gate, "worst 10% change (window)") == ["PASS_UNPROVEN"]
    assert gate.decision == Decision.PASS_UNPROVEN


def test_a_small_drop_with_few_runs_asks_for_confirmation_and_a_confirmed_one_fails() -> None:
    bad, _ = worse(GOOD, 8)  # About .03: more than chance, less than run-to-run noise of .02 could explain.
    built = case(scores(bad), pinned=Past("pin", scores(GOOD)))
    gate = decide(built)
    assert (gate.decision, verdicts(gate, "regression (pin)")) == (Decision.INCONCLUSIVE, ["INCONCLUSIVE"])
    assert "once more to confirm" in evidence(gate, "regression (pin)")
    assert decide(replace(built, confirmed=frozenset({METRIC}))).decision == Decision.FAIL


def test_a_large_drop_against_the_pin_alone_fails() -> None:
    bad, _ = worse(GOOD, 30)
    assert decide(case(scores(bad), pinned=Past("pin", scores(GOOD)))).decision == Decision.FAIL


def test_slow_drift_within_the_window_is_caught_by_the_pin() -> None:
    bad, _ = worse(GOOD, 20)
    nights = window(bad)
    assert decide(case(scores(bad), window=nights)).decision == Decision.PASS
    assert decide(case(scores(bad), window=nights, pinned=Past("pin", scores(GOOD)))).decision == Decision.FAIL


def test_a_regression_does_not_become_normal_because_it_lasts() -> None:
    bad, _ = worse(GOOD, 20)
    good, later = window(GOOD), tuple(replace(past, is_failed=True) for past in window(bad, runs=3))
    assert decide(case(scores(bad), window=(*good, *later))).decision == Decision.FAIL


def test_pinning_a_failed_night_accepts_its_level() -> None:
    bad, _ = worse(GOOD, 20)
    failed = Past("accepted", scores(bad), is_failed=True)
    gate = decide(case(scores(bad), window=(*window(GOOD), failed), pinned=Past("accepted", scores(bad))))
    assert verdicts(gate, "regression (window)") == ["PASS"]
    assert gate.decision == Decision.PASS


def test_a_first_evaluation_is_at_best_unproven() -> None:
    gate = decide(case(scores(GOOD)))
    assert (gate.decision, gate.exit_code) == (Decision.PASS_UNPROVEN, 0)


def test_a_set_too_small_to_show_the_margin_says_so() -> None:
    values = base(40)
    gate = decide(case(scores(flaky(values, 0.3, 5)), window=window(values, share=0.3)))
    assert gate.decision == Decision.PASS_UNPROVEN
    assert "cannot show .030" in evidence(gate, "regression (window)")


# Missing grades ------------------------------------------------------------------------------------------------------


def test_invalid_replies_on_failing_items_cannot_turn_fail_into_pass() -> None:
    bad, hit = worse(GOOD, 20)
    hidden = [None if index in hit else value for index, value in enumerate(bad)]
    lenient = {"max_invalid_share": 0.5}
    assert decide(case(scores(bad), window=window(GOOD), gate=lenient)).decision == Decision.FAIL
    gate = decide(case(scores(hidden), window=window(GOOD), gate=lenient))
    assert verdicts(gate, "regression (window)") == ["INCONCLUSIVE"]
    assert gate.decision == Decision.INCONCLUSIVE


def test_too_many_invalid_replies_block() -> None:
    hidden = [None if index < 10 else value for index, value in enumerate(GOOD)]  # 10 of 300 = 3.3 % > 2 %.
    gate = decide(case(scores(hidden), window=window(GOOD)))
    assert (gate.decision, gate.exit_code, verdicts(gate, "invalid")) == (Decision.BLOCKED, 3, ["BLOCKED"])
    assert "10 invalid: 3.3% > 2%" in evidence(gate, "invalid")


def test_a_floor_missed_on_the_mean_fails_and_one_met_only_without_missing_grades_is_inconclusive() -> None:
    values: list[float | None] = [1.0] * 150 + [0.6] * 145 + [None] * 5
    # Mean of 295: (150 + 87) / 295 = .803; with five zeros 237 / 300 = .79.
    demand = {"metrics": {METRIC: {"floor": 0.8}}}
    assert verdicts(decide(case(scores(values), gate=demand)), "floor") == ["INCONCLUSIVE"]
    assert verdicts(decide(case(scores(values), gate={"metrics": {METRIC: {"floor": 0.79}}})), "floor") == ["PASS"]
    gate = decide(case(scores(values), gate={"metrics": {METRIC: {"floor": 0.81}}}))
    assert (verdicts(gate, "floor"), gate.decision) == (["FAIL"], Decision.FAIL)


def test_catastrophes_count_against_their_cap() -> None:
    values = np.array([0.0] * 12 + [1.0] * 288)  # 4 %.
    demand = {"metrics": {METRIC: {"catastrophic_cap": 0.02}}}
    assert verdicts(decide(case(scores(values), gate=demand)), "catastrophic") == ["FAIL"]
    clean = np.array([1.0] * 300)  # 0 of 300: upper limit 1 - .05^(1/300) = 1.0 %.
    assert verdicts(decide(case(scores(clean), gate=demand)), "catastrophic") == ["PASS"]


# Comparability -------------------------------------------------------------------------------------------------------


def test_a_changed_judge_prompt_or_metric_blocks_until_its_parallel_baseline_is_accepted() -> None:
    tonight = scores(GOOD, judge_key="judge-2")
    built = case(tonight, window=window(GOOD), calibrations=calibration(judge_key="judge-2"))
    gate = decide(built)
    assert (gate.decision, gate.exit_code) == (Decision.BLOCKED, 3)
    assert "the judge, its prompts or the metric changed" in evidence(gate, "regression (window)")
    accepted = decide(replace(built, accepted_judges=frozenset({"judge-2"})))
    assert accepted.decision == Decision.PASS_UNPROVEN
    assert "new series" in evidence(accepted, "regression (window)")


def test_nights_by_a_new_judge_block_until_it_is_accepted_however_many_there_are() -> None:
    tonight = scores(GOOD, judge_key="judge-2")
    built = case(tonight, window=window(GOOD, judge_key="judge-2"), calibrations=calibration(judge_key="judge-2"))
    assert decide(built).decision != Decision.BLOCKED, "a series that began with it"
    changed = replace(built, judges_of_record={METRIC: frozenset({"judge-1"})})
    gate = decide(changed)
    assert (gate.decision, verdicts(gate, "judge")) == (Decision.BLOCKED, ["BLOCKED"])
    assert "judges accept" in evidence(gate, "judge")
    assert verdicts(gate, "regression (window)") == verdicts(decide(built), "regression (window)"), "still compared"
    accepted = replace(changed, judges_of_record={METRIC: frozenset({"judge-2"})})
    assert verdicts(decide(accepted), "judge") == []


def test_a_largely_changed_dataset_blocks_and_a_small_edit_stays_comparable() -> None:
    many = scores(GOOD, versions=dict.fromkeys(range(60), "v2"))
    gate = decide(case(many, window=window(GOOD)))
    assert gate.decision == Decision.BLOCKED
    assert "the dataset changed: only 240 items" in evidence(gate, "regression (window)")
    few = decide(case(scores(GOOD, versions={0: "v2", 1: "v2"}), window=window(GOOD)))
    assert few.decision in {Decision.PASS, Decision.PASS_UNPROVEN}
    assert "298 shared, 2 changed or gone, 2 new" in evidence(few, "regression (window)")


def test_content_that_differs_from_its_tag_blocks() -> None:
    gate = decide(case(scores(GOOD), window=window(GOOD), rot=("q0001 differs from tag v4",)))
    assert gate.decision == Decision.BLOCKED
    assert "changed without a new tag: q0001" in evidence(gate, "dataset")


def test_self_evaluation_blocks() -> None:
    gate = decide(case(scores(GOOD), window=window(GOOD), self_evaluation=("exaone-4.0-32b",)))
    assert (gate.decision, gate.exit_code) == (Decision.BLOCKED, 3)


# Calibration ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calibrations", "policy", "decision"),
    [
        (calibration(decision="pass"), Policy.RELEASE, Decision.PASS),
        (calibration(decision="inconclusive", provisional=True), Policy.PR, Decision.PASS_UNPROVEN),
        (calibration(decision="inconclusive", provisional=True), Policy.NIGHTLY, Decision.PASS_UNPROVEN),
        (calibration(decision="inconclusive", provisional=True), Policy.RELEASE, Decision.BLOCKED),
        (calibration(decision="inconclusive"), Policy.PR, Decision.INCONCLUSIVE),
        (calibration(decision="untested", reason="n_too_small"), Policy.PR, Decision.BLOCKED),
        (calibration(decision="fail"), Policy.PR, Decision.BLOCKED),
        (calibration(decision="untested", label_provenance="constructed", reason="constructed_labels"), Policy.PR, Decision.BLOCKED),
        (calibration(decision="pass", label_provenance="model"), Policy.PR, Decision.BLOCKED),
        (calibration().clear(), Policy.PR, Decision.BLOCKED),
        (calibration(judge_key="another"), Policy.PR, Decision.BLOCKED),
    ],
)  # fmt: skip
def test_the_judge_bounds_the_decision(calibrations: pl.DataFrame, policy: Policy, decision: Decision) -> None:
    assert (
        decide(case(scores(GOOD), window=window(GOOD), calibrations=calibrations, policy=policy)).decision == decision
    )


def test_korean_evidence_names_the_labels_in_korean() -> None:
    labels = calibration(decision="untested", label_provenance="constructed", reason="constructed_labels")
    rules = decide(case(scores(GOOD), window=window(GOOD), calibrations=labels)).rules
    (rule,) = [one for one in rules if one.rule == "calibration"]
    assert "라벨: 구성" in rule.evidence_ko and "constructed" not in rule.evidence_ko


def test_the_newest_calibration_counts() -> None:
    old = calibration(decision="pass")
    new = calibration(decision="fail", labels_sha256="more", calibrated_at=scenario.NOW.replace(day=12))
    for frame in (pl.concat([old, new]), pl.concat([new, old])):
        assert decide(case(scores(GOOD), calibrations=frame)).decision == Decision.BLOCKED


def test_a_metric_without_judge_needs_no_calibration() -> None:
    built = replace(case(scores(GOOD, judge_key=None), window=window(GOOD, judge_key=None)), judged=())
    assert decide(built).decision == Decision.PASS


# The whole -----------------------------------------------------------------------------------------------------------


def test_an_empty_evaluation_never_passes() -> None:
    nothing = scores([])
    gate = decide(case(nothing, row=evaluation(nothing)))
    assert (gate.decision, gate.exit_code) == (Decision.BLOCKED, 3)


def test_an_evaluation_without_gated_metric_never_passes() -> None:
    assert decide(case(scores(GOOD), gated=())).decision == Decision.BLOCKED


def test_a_partial_evaluation_never_passes() -> None:
    tonight = scores(GOOD)
    row = evaluation(tonight, is_partial=True, partial_reason="limited to 300 items")
    gate = decide(case(tonight, window=window(GOOD), row=row))
    assert gate.decision == Decision.BLOCKED
    assert "limited to 300 items" in evidence(gate, "complete")


def test_rows_that_are_missing_block() -> None:
    tonight = scores(GOOD)
    gate = decide(case(tonight.head(290), row=evaluation(tonight), window=window(GOOD)))
    assert gate.decision == Decision.BLOCKED
    assert "290 of 300 items have a row" in evidence(gate, "complete")


def test_all_invalid_never_passes() -> None:
    gate = decide(case(scores([None] * 100), window=window(base(100)), gate={"max_invalid_share": 1.0}))
    assert gate.decision == Decision.BLOCKED
    assert evidence(gate, "invalid") == "nothing was scored"


@pytest.mark.parametrize(
    ("failed", "total", "verdict"),
    [
        (0, 60, "PASS"),
        (1, 60, "PASS"),  # 1.7 %; 60 items cannot show 2 % even without a failure, so only the share counts.
        (2, 60, "BLOCKED"),  # 3.3 %.
        (1, 300, "PASS"),  # Upper limit 1.6 %.
        (5, 300, "FAIL"),  # 1.7 %, upper limit 3.5 %.
        (7, 300, "BLOCKED"),  # 2.3 %.
    ],
)
def test_failed_responses_are_capped_by_their_upper_limit(failed: int, total: int, verdict: str) -> None:
    values = base(total)
    tonight = scores(values, statuses=dict.fromkeys(range(failed), ScoreStatus.NO_RESPONSE))
    gate = decide(case(tonight))
    assert verdicts(gate, "responses", "all") == [verdict]
    assert f"{failed} failed of {total}" in evidence(gate, "responses")


def test_a_proven_fail_is_printed_also_when_another_metric_blocks() -> None:
    bad, _ = worse(GOOD, 30)
    tonight = pl.concat([scores(bad), scores(GOOD, metric="faithfulness")])
    nights = tuple(
        Past(one.evaluation_id, pl.concat([one.scores, one.scores.with_columns(metric=pl.lit("faithfulness"))]))
        for one in window(GOOD)
    )
    gate = decide(case(tonight, window=nights, gated=(METRIC, "faithfulness")))
    assert (gate.decision, gate.exit_code) == (Decision.BLOCKED, 3)
    assert verdicts(gate, "calibration", "faithfulness") == ["BLOCKED"]
    assert verdicts(gate, "regression (window)") == ["FAIL"]
    table = rows(gate, "tonight", Policy.PR, scenario.NOW)
    assert table["rule"][0] == "decision"
    assert table["evidence"][0].startswith("Answers got worse: answer_accuracy -.")
    assert len(table["item_ids"][0]) >= 30


def test_an_ungated_metric_is_reported_and_does_not_decide() -> None:
    tonight = pl.concat([scores(GOOD), scores(np.zeros(300), metric="context_relevance")])
    gate = decide(case(tonight, window=window(GOOD)))
    assert gate.decision == Decision.PASS
    assert evidence(gate, "reported") == "reported, not gated: mean .000"


def test_holm_keeps_several_metrics_from_failing_by_chance() -> None:
    # One metric at p about .03 alone would fail at .05; beside three others it must not.
    old = np.array([1.0] * 100)
    new = old.copy()
    new[:5] = 0.5  # Five of five changed cases fell: p = 2^-5 = .031.
    alone = decide(case(scores(new), pinned=Past("pin", scores(old))))
    assert verdicts(alone, "regression (pin)") == ["INCONCLUSIVE"]
    names = ("a", "b", "c")
    tonight = pl.concat([scores(new), *(scores(old, metric=name) for name in names)])
    pinned = pl.concat([scores(old), *(scores(old, metric=name) for name in names)])
    trusted = pl.concat([calibration(), *(calibration(name) for name in names)])
    together = decide(case(tonight, pinned=Past("pin", pinned), gated=(METRIC, *names), calibrations=trusted))
    assert verdicts(together, "regression (pin)") == ["PASS_UNPROVEN"]


@pytest.mark.parametrize(
    ("decision", "policy", "code"),
    [
        (Decision.PASS, Policy.PR, 0), (Decision.PASS_UNPROVEN, Policy.RELEASE, 0), (Decision.FAIL, Policy.PR, 1),
        (Decision.BLOCKED, Policy.NIGHTLY, 3), (Decision.INCONCLUSIVE, Policy.PR, 0),
        (Decision.INCONCLUSIVE, Policy.RELEASE, 4),
    ],
)  # fmt: skip
def test_exit_codes_by_policy(decision: Decision, policy: Policy, code: int) -> None:
    from eval_pipeline.config import GateConfig
    from eval_pipeline.stages.gating import exit_code

    assert exit_code(decision, GateConfig().policy(policy)) == code


def test_a_policy_that_does_not_enforce_exits_0() -> None:
    bad, _ = worse(GOOD, 30)
    settings = {"policies": {"pr": {"enforce": False}}}
    gate = decide(case(scores(bad), window=window(GOOD), gate=settings))
    assert (gate.decision, gate.exit_code) == (Decision.FAIL, 0)


def test_invalid_replies_in_the_tail_cannot_lift_it_over_its_floor() -> None:
    values = np.array([0.0] * 6 + [0.5] * 4 + [1.0] * 90)
    demand = {"max_invalid_share": 1.0, "metrics": {METRIC: {"cvar10_floor": 0.3, "catastrophic_cap": 0.05}}}
    # Worst 10 of 100: (6 * 0 + 4 * .5) / 10 = .2 < .3; 6 % at 0 > 5 %.
    gate = decide(case(scores(values), gate=demand))
    assert (verdicts(gate, "worst 10%"), verdicts(gate, "catastrophic")) == (["FAIL"], ["FAIL"])
    # Without the zeros 94 values are left: too few to gate a tail, and none at 0. The lost six count as the worst.
    gate = decide(case(scores([None] * 6 + values[6:].tolist()), gate=demand))
    assert (verdicts(gate, "worst 10%"), verdicts(gate, "catastrophic")) == (["INCONCLUSIVE"], ["INCONCLUSIVE"])
    assert ".200 < .300 at the worst" in evidence(gate, "worst 10%")


def test_losing_one_of_two_grades_of_failing_items_hides_no_regression() -> None:
    bad, hit = worse(GOOD, 20)
    bad[hit] = 0.25  # Grades 0 and 2 of 4.
    assert decide(case(scores(bad), window=window(GOOD))).decision == Decision.FAIL
    # The 0 is lost: the value becomes .5, between .25 and .75.
    lost = pl.col("item_id").is_in([f"q{index:04d}" for index in hit])
    tonight = scores(bad).with_columns(
        pl.when(lost).then(0.5).otherwise("value").alias("value"),
        pl.when(lost).then(0.75).otherwise("upper").alias("upper"),
    )
    assert decide(case(tonight, window=window(GOOD))).decision in {Decision.FAIL, Decision.INCONCLUSIVE}
