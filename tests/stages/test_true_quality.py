"""Which estimate of true quality applies, and that it corrects a lenient judge."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scenario import METRIC, base, scores

from eval_pipeline.stages.true_quality import as_json, estimate
from eval_pipeline.tables import HUMAN_LABELS
from eval_pipeline.vocabulary import ScoreStatus

TRUE = base(1000, seed=3)
LENIENT = np.minimum(1.0, TRUE + 0.25)


def labels(count: int, chance: float | None = 0.1, provenance: str = "human", prefix: str = "content") -> pl.DataFrame:
    picked = np.random.default_rng(1).choice(1000, count, replace=False)
    return HUMAN_LABELS.frame([
        {"dataset": "d", "item_id": f"q{index:04d}", "content_sha256": f"{prefix}-q{index:04d}", "metric": METRIC,
         "annotator": "kim", "score": TRUE[index] * 4, "value": TRUE[index], "provenance": provenance, "texts": "{}",
         "inclusion_probability": chance}
        for index in picked.tolist()
    ])  # fmt: skip


def test_random_labels_of_this_run_correct_a_lenient_judge() -> None:
    found = estimate(scores(LENIENT), labels(100))[METRIC]
    assert found.estimator == "ppi_mean"
    assert found.raw.value == pytest.approx(LENIENT.mean())
    assert found.corrected is not None and found.corrected.value is not None
    assert abs(found.corrected.value - TRUE.mean()) < 0.02 < found.raw.value - TRUE.mean()
    assert found.corrected.lower < TRUE.mean() < found.corrected.upper  # pyright: ignore[reportOperatorIssue]
    assert found.human_only is not None


@pytest.mark.parametrize(
    "unfit",
    [labels(49), labels(100, chance=None), labels(100, provenance="model"), labels(100, prefix="other run")],
    ids=["too few", "chance unknown", "not human", "of another run"],
)
def test_labels_that_do_not_fit_correct_nothing(unfit: pl.DataFrame) -> None:
    found = estimate(scores(LENIENT), unfit)[METRIC]
    assert (found.estimator, found.corrected) == ("uncorrected", None)
    assert found.raw.value == pytest.approx(LENIENT.mean())


def test_labels_of_another_run_correct_a_pass_share() -> None:
    human = [1.0] * 80 + [0.0] * 20
    judge = [1.0] * 80 + [1.0] * 10 + [0.0] * 10  # Sensitivity 1, specificity .5.
    tonight = scores([1.0] * 90 + [0.0] * 10)
    older = pl.DataFrame({"metric": METRIC, "human": human, "judge": judge})
    found = estimate(tonight, HUMAN_LABELS.frame(), older=older, cuts={METRIC: 0.5})[METRIC]
    # (p + Sp - 1) / (Se + Sp - 1) = (.9 + .5 - 1) / (1 + .5 - 1) = .8.
    assert found.estimator == "rogan_gladen"
    assert found.corrected is not None and found.corrected.value == pytest.approx(0.8)
    shown = as_json(found)
    assert shown["corrected"]["value"] == pytest.approx(0.8)
    json.dumps(shown, allow_nan=False)


def test_failed_responses_are_no_judge_scores() -> None:
    found = estimate(scores([1.0, 1.0, 0.0], statuses={2: ScoreStatus.NO_RESPONSE}), HUMAN_LABELS.frame())[METRIC]
    assert (found.raw.value, found.raw.n) == (1.0, 2)
