"""docs/gate.md: what a calibration allows at best is what the gate decides on an evaluation that is otherwise faultless."""

import re
from pathlib import Path

import pytest
from scenario import base, calibration, case, flaky, scores, window

from eval_pipeline.stages.gating import decide
from eval_pipeline.vocabulary import Policy

PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## What a calibration allows at best")[1].split("\n## ")[0]
ROWS = {
    cells[0].split(" (")[0].split(":")[0]: dict(zip(("pr", "nightly", "release"), cells[1:], strict=True))
    for cells in (re.findall(r"[^|]+", line) for line in TABLE.splitlines() if line.startswith("| "))
    for cells in [[cell.strip() for cell in cells]]
    if set(cells[1]) != {"-"} and cells[0] != "calibration"
}
GOOD = base()
FOUND = {
    "pass": calibration(),
    "provisional": calibration(decision="inconclusive", provisional=True, rho_lower=0.62, spearman_rho=0.74),
    "inconclusive": calibration(decision="inconclusive", rho_lower=0.52, spearman_rho=0.66),
    "fail": calibration(decision="fail", rho_upper=0.6, spearman_rho=0.4),
    "untested": calibration(decision="untested", pair_count=12),
}


def test_the_table_has_a_row_for_every_kind():
    assert set(ROWS) == set(FOUND)


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("kind", FOUND)
def test_the_best_possible_decision_is_the_one_in_the_table(kind, policy):
    gate = decide(case(scores(flaky(GOOD, 0.05, 1)), window=window(GOOD), policy=policy, calibrations=FOUND[kind]))
    assert gate.decision.value == ROWS[kind][policy.value]


@pytest.mark.parametrize("provenance", ["constructed", "model", "mixed", "none"])
def test_labels_that_are_not_by_people_count_as_untested(provenance):
    found = calibration(label_provenance=provenance)
    gate = decide(case(scores(flaky(GOOD, 0.05, 1)), window=window(GOOD), calibrations=found))
    assert gate.decision.value == ROWS["untested"]["pr"]


def test_the_exit_codes_of_the_first_table_are_those_of_the_decisions():
    codes = dict(re.findall(r"^\| ([A-Z_]+) \| (\d) \|", PAGE, re.MULTILINE))
    assert codes == {"PASS": "0", "PASS_UNPROVEN": "0", "FAIL": "1", "BLOCKED": "3", "INCONCLUSIVE": "4"}
    release = {found.decision.value: found.exit_code for kind in FOUND for found in [
        decide(case(scores(flaky(GOOD, 0.05, 1)), window=window(GOOD), policy=Policy.RELEASE, calibrations=FOUND[kind]))
    ]}  # fmt: skip
    assert all(str(code) == codes[decision] for decision, code in release.items())
