"""One million judged scores: aggregate, calibrate and gate against a window and a pin, next to a plain group-by.

    python benchmarks/aggregate_million.py

Prints seconds of each part and the peak memory of the process. The bounds are 5 s and 1.5 GB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import polars as pl

from eval_pipeline.config import GateConfig
from eval_pipeline.stages import aggregation, calibration, gating
from eval_pipeline.tables import HUMAN_LABELS
from eval_pipeline.vocabulary import Policy

METRICS = ("answer_accuracy", "faithfulness")
ITEMS = 500_000
"""Items; with two metrics of one score each, a million."""
NOW = datetime(2026, 6, 11, tzinfo=UTC)
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
LABELS = 100_000
SECONDS: dict[str, float] = {}


def scores(seed: int) -> pl.DataFrame:
    """Rows with the columns that the stages read."""
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(0)
    names = pl.int_range(ITEMS, eager=True).cast(pl.String)
    parts = []
    for metric in METRICS:
        values = base.choice(LEVELS, ITEMS, p=[0.03, 0.05, 0.07, 0.15, 0.70])
        moved = np.where(rng.random(ITEMS) < 0.05, rng.choice([-0.25, 0.25], ITEMS), 0.0)
        values, invalid = np.clip(values + moved, 0, 1), rng.random(ITEMS) < 0.005
        frame = pl.DataFrame({
            "item_id": names, "item_sha256": names, "content_sha256": names, "value": values,
            "status": np.where(invalid, "invalid", "scored_both"),
            "stratum": pl.Series(np.array(["faq", "numbers", "tables", "refusal", "multihop"])[np.arange(ITEMS) % 5]),
        })  # fmt: skip
        lost = pl.col("status") == "invalid"
        parts.append(frame.with_columns(
            pl.when(lost).then(None).otherwise(pl.col("value")).alias("value"),
            pl.when(lost).then(0.0).otherwise(pl.col("value")).alias("lower"),
            pl.when(lost).then(1.0).otherwise(pl.col("value")).alias("upper"),
            evaluation_id=pl.lit("e"), metric=pl.lit(metric), cluster_id=pl.lit(None, pl.String), judge_key=pl.lit(metric),
        ))  # fmt: skip
    return pl.concat(parts)


def labels(judged: pl.DataFrame) -> pl.DataFrame:
    """People who mostly agree with the judge, on `LABELS` items of each metric."""
    rng = np.random.default_rng(9)
    known = judged.drop_nulls("value").group_by("metric", maintain_order=True).head(LABELS)
    value = np.where(rng.random(known.height) < 0.1, rng.choice(LEVELS, known.height), known["value"].to_numpy())
    frame = known.select("item_id", "content_sha256", "metric", "stratum").with_columns(
        value=pl.Series(value), score=pl.Series(value), dataset=pl.lit("d"), annotator=pl.lit("a"), provenance=pl.lit("human"),
        texts=pl.lit("{}"), inclusion_probability=pl.lit(None, pl.Float64), cluster_id=pl.lit(None, pl.String),
        labelled_at=pl.lit(None, pl.String), note=pl.lit(None, pl.String),
    )  # fmt: skip
    return frame.select(list(HUMAN_LABELS.schema))


@contextmanager
def timed(name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    SECONDS[name] = round(time.perf_counter() - started, 3)


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """What people write first: mean and 10 % quantile by metric and stratum."""
    by = ["metric", "stratum"]
    return frame.group_by(by).agg(pl.len(), pl.col("value").mean(), pl.col("value").quantile(0.1).alias("q10"))


def run(make: Callable[[int], pl.DataFrame] = scores, window: int = 1) -> dict[str, float]:
    """All parts once."""
    tonight, earlier = make(1), [make(2 + night) for night in range(window)]
    people = labels(tonight)
    judged = tonight.select("metric", "content_sha256", "value")
    with timed("plain_group_by"):
        plain(tonight)
    with timed("aggregate"):
        summaries = aggregation.summarise(tonight, evaluation_id="e")
    with timed("calibrate"):
        judges = {name: calibration.JudgeOnMetric(name, "judge", "model") for name in METRICS}
        calibrations = calibration.calibrate(people, judged, judges, evaluation_id="e", now=NOW)
    past = tuple(gating.Past(f"night-{index}", frame) for index, frame in enumerate(earlier))
    row = {"item_count": ITEMS, "is_partial": False, "partial_reason": None, "judge_keys": json.dumps({})}
    with timed("gate"):
        gate = gating.decide(gating.Case(
            evaluation=row, scores=tonight, summaries=summaries, calibrations=calibrations, gate=GateConfig(),
            policy=Policy.NIGHTLY, gated=METRICS, judged=METRICS, window=past,
        ))  # fmt: skip
    print(*(f"{rule.verdict:<14} {rule.metric:<18} {rule.rule}: {rule.evidence}" for rule in gate.rules), sep="\n")
    return SECONDS


if __name__ == "__main__":
    found = run(window=int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    total = sum(seconds for name, seconds in found.items() if name != "plain_group_by")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(json.dumps(found | {"total": round(total, 3), "peak_gb": round(peak, 2)}))
