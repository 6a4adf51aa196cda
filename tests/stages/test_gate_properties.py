"""What no evaluation may do to the gate, whatever its values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenario import LEVELS, METRIC, case, evaluation, flaky, scores

from eval_pipeline.stages import aggregation
from eval_pipeline.stages.gating import Case, Past, decide, overall
from eval_pipeline.vocabulary import Decision, NoResponsePolicy, ScoreStatus

PASSES = {Decision.PASS, Decision.PASS_UNPROVEN}
DEMANDS = {
    "max_invalid_share": 1.0,
    "max_failed_response_share": 1.0,
    "metrics": {METRIC: {"floor": 0.8, "cvar10_floor": 0.2, "catastrophic_cap": 0.05}},
}
COUNT = 110


def built(tonight: pl.DataFrame, nights: tuple[Past, ...], pinned: Past) -> Case:
    return case(tonight, window=nights, pinned=pinned, gate=DEMANDS)


@st.composite
def bad_nights(draw: st.DrawFn) -> tuple[np.ndarray, tuple[Past, ...], Past, np.ndarray]:
    """A night in which some items got worse, its references, and which of the failing items are then hidden."""
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    old = rng.choice(LEVELS, COUNT, p=[0.03, 0.05, 0.07, 0.15, 0.70])
    new = flaky(old, draw(st.sampled_from([0.0, 0.05, 0.2])), seed + 1)
    new[rng.choice(COUNT, draw(st.integers(0, 30)), replace=False)] = draw(st.sampled_from([0.0, 0.25, 0.5]))
    nights = tuple(
        Past(f"n{index}", scores(flaky(old, 0.05, seed + 2 + index)))
        for index in range(draw(st.sampled_from([1, 5, 7])))
    )
    failing = np.flatnonzero(new < 0.5)
    hidden = failing[rng.random(len(failing)) < draw(st.sampled_from([0.3, 0.7, 1.0]))]
    return new, nights, Past("pin", scores(flaky(old, 0.02, seed))), hidden


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bad_nights(), st.sampled_from([ScoreStatus.INVALID, ScoreStatus.NOT_ASKED, ScoreStatus.NO_CLAIMS]))
def test_invalidating_failing_items_never_turns_fail_into_pass(night: tuple, status: ScoreStatus) -> None:
    new, nights, pinned, hidden = night
    before = decide(built(scores(new), nights, pinned))
    values = [None if index in hidden else value for index, value in enumerate(new)]
    after = decide(built(scores(values, statuses=dict.fromkeys(hidden.tolist(), status)), nights, pinned))
    regressed = any(rule.rule.startswith("regression") and rule.verdict == Decision.FAIL for rule in before.rules)
    # An item without claims has no value by definition, so levels may move; a regression may not vanish.
    if before.decision == Decision.FAIL and (regressed or status != ScoreStatus.NO_CLAIMS):
        assert after.decision not in PASSES


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bad_nights())
def test_deleting_failing_items_never_turns_fail_into_pass(night: tuple) -> None:
    new, nights, pinned, hidden = night
    whole = scores(new)
    before = decide(built(whole, nights, pinned))
    left = whole.filter(~pl.int_range(pl.len()).is_in(hidden.tolist()))
    # Rows lost within the evaluation: its item count does not fit any more.
    lost = decide(replace(built(left, nights, pinned), evaluation=evaluation(whole)))
    if len(hidden):
        assert lost.decision == Decision.BLOCKED
    # Items deleted from the dataset under a new tag: a regression that they carried does not vanish.
    edited = decide(built(left, nights, pinned))
    regressed = any(rule.rule.startswith("regression") and rule.verdict == Decision.FAIL for rule in before.rules)
    if regressed:
        assert edited.decision not in PASSES


@given(st.lists(st.sampled_from(list(Decision)), max_size=8))
def test_the_decision_is_the_worst_verdict_and_nothing_evaluated_is_no_pass(verdicts: list[Decision]) -> None:
    decision = overall(verdicts)
    assert decision != Decision.NOT_EVALUATED
    if decision == Decision.PASS:
        assert verdicts and set(verdicts) == {Decision.PASS}
    for worse in (Decision.BLOCKED, Decision.FAIL, Decision.INCONCLUSIVE):
        if worse in verdicts:
            assert decision not in PASSES


statuses = st.lists(
    st.tuples(st.sampled_from(list(ScoreStatus)), st.sampled_from(LEVELS), st.sampled_from(["faq", "numbers", "all"])),
    max_size=60,
)


@given(statuses, st.sampled_from(list(NoResponsePolicy)))
def test_every_item_is_accounted_for_and_the_mean_lies_within_its_bounds(rows: list, policy: NoResponsePolicy) -> None:
    frame = scores(
        [value for _, value, _ in rows], statuses={index: status for index, (status, _, _) in enumerate(rows)}
    ).with_columns(stratum=pl.Series([stratum for _, _, stratum in rows], dtype=pl.String))
    if policy == NoResponsePolicy.EXCLUDE:
        failed = pl.col("status") == ScoreStatus.NO_RESPONSE.value
        frame = frame.with_columns(value=pl.when(failed).then(None).otherwise(pl.col("value")))
    found = aggregation.summarise(frame, evaluation_id="e", policies={METRIC: aggregation.MetricPolicy(policy)})
    assert aggregation.accounting_violations(found) == []
    for row in found.to_dicts():
        if row["mean"] is not None:
            assert row["mean_lower_bound"] - 1e-12 <= row["mean"] <= row["mean_upper_bound"] + 1e-12
            assert row["cvar10"] <= row["mean"] + 1e-12
            assert row["cvar10_missing_zero"] <= row["cvar10"] + 1e-12
            assert row["mean_interval_lower"] <= row["mean"] <= row["mean_interval_upper"]
        else:
            assert row["mean_status"] == "undefined"
            assert row["mean_reason"] is not None
