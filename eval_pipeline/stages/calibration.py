"""Judge scores and labels to calibrations: how far a judge agrees with people, and whether that is enough."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

import polars as pl

from eval_pipeline.stats import calibration_rule
from eval_pipeline.stats.correlation import spearman
from eval_pipeline.stats.stat import Stat, undefined
from eval_pipeline.tables import CALIBRATIONS
from eval_pipeline.vocabulary import CalibrationDecision, Provenance

ALL = "all"
DOUBLE_LABELLED = 30


@dataclass(frozen=True, slots=True)
class Bar:
    """When a judge counts as tested."""

    bar: float = 0.7
    minimum_labels: int = 50


@dataclass(frozen=True, slots=True)
class JudgeOnMetric:
    """Who judged a metric."""

    judge_key: str
    judge: str
    judge_model: str


def calibrate(
    labels: pl.DataFrame,
    judged: pl.DataFrame,
    judges: Mapping[str, JudgeOnMetric],
    *,
    bar: Bar = Bar(),  # noqa: B008
    evaluation_id: str | None,
    now: datetime,
    attempts: Mapping[str, int] | None = None,
) -> pl.DataFrame:
    """`calibrations` rows: one per metric over all labels, and one per stratum with at least 30.

    Args:
        labels: `human_labels` rows.
        judged: the judge's value of each labelled text: metric, content_sha256, value (null when invalid).
        judges: by metric; a metric without one (it asks no judge) is left out.
        attempts: how often each label set was used before, by its hash.

    Where human labels exist only they count. Without any, the others are compared and shown as what they are, and the
    decision is `untested`: constructed labels certify nothing.
    """
    rows: list[dict[str, Any]] = []
    for metric, judge in sorted(judges.items()):
        of_metric = labels.filter(pl.col("metric") == metric)
        counted, provenance = _counted(of_metric)
        values = judged.filter(pl.col("metric") == metric)
        sha = labels_sha256(counted)
        attempt = (attempts or {}).get(sha, 0) + 1
        shared = {
            "judge_key": judge.judge_key, "metric": metric, "labels_sha256": sha, "evaluation_id": evaluation_id,
            "judge": judge.judge, "judge_model": judge.judge_model, "label_provenance": provenance, "bar": bar.bar,
            "attempt": attempt, "calibrated_at": now,
        }  # fmt: skip
        rows.append(shared | {"stratum": ALL} | _row(counted, values, bar, attempt, provenance))
        for (stratum,), part in sorted(counted.drop_nulls("stratum").group_by("stratum"), key=lambda pair: str(pair[0][0])):
            if part["content_sha256"].n_unique() >= 30:
                rows.append(shared | {"stratum": stratum} | _row(part, values, bar, attempt, provenance))
    return CALIBRATIONS.frame(rows)


def labels_sha256(labels: pl.DataFrame) -> str:
    """Identity of a label set: what was labelled, by whom, how."""
    parts = labels.select("content_sha256", "annotator", "value").sort("content_sha256", "annotator").rows()
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _counted(labels: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    human = labels.filter(pl.col("provenance") == Provenance.HUMAN.value)
    if human.height:
        return human, Provenance.HUMAN.value
    kinds = labels["provenance"].unique().to_list()
    return labels, kinds[0] if len(kinds) == 1 else "mixed" if kinds else "none"


def _row(labels: pl.DataFrame, judged: pl.DataFrame, bar: Bar, attempt: int, provenance: str) -> dict[str, Any]:
    per_text = labels.group_by("content_sha256").agg(pl.col("value").mean(), pl.col("cluster_id").first()).sort("content_sha256")
    pairs = per_text.join(judged.select("content_sha256", pl.col("value").alias("judge")), on="content_sha256", how="left")
    result = compare(pairs["value"].to_list(), pairs["judge"].to_list(), bar=bar, attempt=attempt)
    decision, reason = str(result.decision), result.reason
    if provenance != Provenance.HUMAN.value:
        decision, reason = CalibrationDecision.UNTESTED.value, "no_labels" if labels.is_empty() else f"{provenance}_labels"
    agreement = human_agreement(labels)
    return flat(result) | {
        "decision": decision,
        "reason": reason,
        "is_provisional": result.provisional and decision == CalibrationDecision.INCONCLUSIVE.value,
        "human_agreement": agreement.value,
        "statistics": json.dumps({"human_agreement": agreement.to_dict(), **statistics(result)}, sort_keys=True),
    }


def compare(human: Sequence[float | None], judge: Sequence[float | None], *, bar: Bar = Bar(), attempt: int = 1  # noqa: B008
            ) -> calibration_rule.CalibrationResult:  # fmt: skip
    """The decision rule on pairs; a pair with a missing side is dropped and counted."""
    return calibration_rule.calibrate(human, judge, bar=bar.bar, minimum_labels=bar.minimum_labels, attempt=attempt)


def flat(result: calibration_rule.CalibrationResult) -> dict[str, Any]:
    """The result's numbers under the names of the `calibrations` columns."""
    rho = result.spearman_rho
    return {
        "pair_count": result.pair_count,
        "dropped_count": result.dropped_count,
        "spearman_rho": rho.value,
        "rho_lower": rho.lower,
        "rho_upper": rho.upper,
        "rho_status": rho.status,
        "kendall_tau_b": result.kendall_tau_b.value,
        "quadratic_weighted_kappa": result.quadratic_weighted_kappa.value,
        "bias": result.bias.value,
        "mean_absolute_error": result.mean_absolute_error.value,
        "rho_ceiling_by_marginals": result.rho_ceiling_by_marginals.value,
        "labels_needed": result.labels_needed,
    }


STATISTICS = ("spearman_rho", "kendall_tau_b", "quadratic_weighted_kappa", "bias", "mean_absolute_error", "rho_ceiling_by_marginals")


def statistics(result: calibration_rule.CalibrationResult) -> dict[str, Any]:
    """Every statistic as a JSON object, and the warnings."""
    return {name: getattr(result, name).to_dict() for name in STATISTICS} | {"warnings": list(result.warnings)}


def human_agreement(labels: pl.DataFrame) -> Stat:
    """Rank correlation of the two annotators with the most texts in common; undefined below 30 of them."""
    by_annotator = {
        name: dict(part.select("content_sha256", "value").iter_rows()) for (name,), part in labels.group_by("annotator")
    }
    shared = {
        pair: sorted(by_annotator[pair[0]].keys() & by_annotator[pair[1]].keys())
        for pair in combinations(sorted(by_annotator, key=str), 2)
    }
    if not shared:
        return undefined("human_agreement", "one_annotator")
    pair, texts = max(shared.items(), key=lambda entry: len(entry[1]))
    if len(texts) < DOUBLE_LABELLED:
        return undefined("human_agreement", "n_too_small", n=len(texts))
    first, second = (by_annotator[name] for name in pair)
    return spearman([first[text] for text in texts], [second[text] for text in texts])
