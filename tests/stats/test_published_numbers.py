"""Published agreement of two judges and two annotators with people, from the real rows (Kamalloo et al., ACL 2023)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from eval_pipeline.stats.agreement import quadratic_weighted_kappa
from eval_pipeline.stats.calibration_rule import calibrate
from eval_pipeline.stats.ceilings import ceiling_by_human_noise
from eval_pipeline.stats.correlation import spearman

_ROOT = Path(__file__).resolve().parents[2]
_FILE = Path(os.environ.get("EVAL_DATA_DIR", _ROOT.parent / "shared" / "data")) / "openqa301_answer_accuracy.jsonl"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not _FILE.is_file(), reason=f"{_FILE} is absent; EVAL_DATA_DIR names its folder"),
]


@pytest.fixture(scope="module")
def columns() -> dict[str, list[float | None]]:
    rows = [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]
    yes_no = {"Yes": 1.0, "No": 0.0}
    found: dict[str, list[float | None]] = {"human": [row["human_score"] for row in rows]}
    for judge in ("gpt-4", "text-davinci-003"):
        found[judge] = [next((j["score"] for j in row["judge_raw"] if j["judge"] == judge), None) for row in rows]
    for annotator in ("annotator1", "annotator2"):
        found[annotator] = [yes_no.get(row["human_label_raw"][annotator]) for row in rows]
    found["group"] = [row["group"] for row in rows]
    return found


@pytest.mark.parametrize(
    ("first", "second", "rho", "n", "dropped"),
    [
        ("human", "gpt-4", 0.6965, 1487, 3),
        ("human", "text-davinci-003", 0.6765, 1490, 0),
        ("annotator1", "annotator2", 0.7351, 1483, 7),
    ],
)
def test_rho_is_the_published_one(
    columns: dict[str, list[float | None]], first: str, second: str, rho: float, n: int, dropped: int
) -> None:
    stat = spearman(columns[first], columns[second])
    assert (round(stat.value or 0, 4), stat.n, stat.n_dropped, stat.status) == (rho, n, dropped, "ok")
    assert stat.lower is not None and stat.upper is not None and stat.lower < rho < stat.upper


def test_mean_of_both_judges_is_the_published_one(columns: dict[str, list[float | None]]) -> None:
    both = [
        None if a is None or b is None else (a + b) / 2
        for a, b in zip(columns["gpt-4"], columns["text-davinci-003"], strict=True)
    ]
    assert round(spearman(columns["human"], both).value or 0, 4) == 0.7267


def test_a_judge_just_under_the_bar_is_neither_certified_nor_failed(columns: dict[str, list[float | None]]) -> None:
    result = calibrate(columns["human"], columns["gpt-4"], clusters=columns["group"])
    assert (result.decision, result.provisional) == ("inconclusive", False)
    assert calibrate(columns["human"], columns["text-davinci-003"]).decision in ("fail", "inconclusive")


def test_people_themselves_cap_what_a_judge_can_reach(columns: dict[str, list[float | None]]) -> None:
    kappa = quadratic_weighted_kappa(columns["annotator1"], columns["annotator2"])
    assert ceiling_by_human_noise(kappa).value == pytest.approx(0.735**0.5, abs=0.005)
