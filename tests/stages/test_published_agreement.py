"""Published agreement through the calibration itself, from the real rows (Kamalloo et al., ACL 2023)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from eval_pipeline.stages.calibration import calibrate_pairs

_ROOT = Path(__file__).resolve().parents[2]
_FILE = Path(os.environ.get("EVAL_DATA_DIR", _ROOT.parent / "shared" / "data")) / "openqa301_answer_accuracy.jsonl"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not _FILE.is_file(), reason=f"{_FILE} is absent; EVAL_DATA_DIR names its folder"),
]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def said(rows: list[dict], judge: str, field: str) -> list:
    return [next((one[field] for one in row["judge_raw"] if one["judge"] == judge), None) for row in rows]


@pytest.mark.parametrize("field", ["score", "label"])
def test_gpt_4_is_just_under_the_bar_and_its_unusable_replies_are_counted(rows: list[dict], field: str) -> None:
    human = [row["human_score"] for row in rows]
    annotators = tuple([row["human_label_raw"][name] for row in rows] for name in ("annotator1", "annotator2"))
    found = calibrate_pairs(human, said(rows, "gpt-4", field), name="gpt-4", annotators=annotators)  # pyright: ignore[reportArgumentType]
    shown = found.report
    assert (round(shown["spearman_rho"]["value"], 4), shown["pair_count"], shown["dropped_count"]) == (0.6965, 1487, 3)
    assert shown["spearman_rho"]["lower"] < 0.6965 < shown["spearman_rho"]["upper"]
    assert (shown["decision"], shown["provisional"], found.exit_code) == ("inconclusive", False, 4)
    assert shown["labels_needed"] > 1487
    assert (round(shown["human_agreement"]["value"], 4), shown["human_agreement"]["n"]) == (0.7351, 1483)
    assert shown["rho_ceiling_by_human_noise"]["value"] == pytest.approx(0.857, abs=0.001)


def test_davinci_and_the_mean_of_both(rows: list[dict]) -> None:
    human = [row["human_score"] for row in rows]
    first, second = said(rows, "gpt-4", "score"), said(rows, "text-davinci-003", "score")
    davinci = calibrate_pairs(human, second).report
    assert (round(davinci["spearman_rho"]["value"], 4), davinci["pair_count"]) == (0.6765, 1490)
    both = [None if None in pair else sum(pair) / 2 for pair in zip(first, second, strict=True)]
    assert round(calibrate_pairs(human, both).report["spearman_rho"]["value"], 4) == 0.7267
