"""Verdicts to scores: what each metric makes of the stored verdicts. Asks nothing, so it can be repeated at will."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from eval_pipeline.metrics import g_eval, pairwise_preference
from eval_pipeline.metrics.declaration import Metric, Sample, Score, Verdict
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.metrics.texts import content_sha256
from eval_pipeline.tables import SCORES
from eval_pipeline.verdict_rows import verdict
from eval_pipeline.vocabulary import GradeMethod, NoClaimsPolicy, NoResponsePolicy, Outcome, ScoreStatus


@dataclass(frozen=True, slots=True)
class Treatment:
    """What one metric does with failed responses and responses without claims."""

    no_response: NoResponsePolicy = NoResponsePolicy.ZERO
    no_claims: NoClaimsPolicy = NoClaimsPolicy.EXCLUDE


def score(
    samples: Sequence[Sample],
    items: pl.DataFrame,
    verdicts: pl.DataFrame,
    metrics: Mapping[str, Metric],
    treatments: Mapping[str, Treatment],
    judge_keys: Mapping[str, str | None],
    evaluation_id: str,
) -> pl.DataFrame:
    """One `scores` row for every metric and sample, whatever became of its questions."""
    facts = {item_id: (stratum, cluster, sha) for item_id, stratum, cluster, sha in
             items.select("item_id", "stratum", "cluster_id", "content_sha256").iter_rows()}  # fmt: skip
    rows = []
    for name, metric in metrics.items():
        of_metric = verdicts.filter(pl.col("metric") == name)
        for sample, value in zip(samples, values(metric, samples, of_metric, treatments.get(name)), strict=True):
            stratum, cluster_id, item_sha256 = facts[sample.item_id]
            rows.append(
                _row(value, metric, sample)
                | {"evaluation_id": evaluation_id, "metric": name, "item_id": sample.item_id, "stratum": stratum,
                   "cluster_id": cluster_id, "item_sha256": item_sha256, "judge_key": judge_keys.get(name)}
            )  # fmt: skip
    return SCORES.frame(rows)


def values(
    metric: Metric, samples: Sequence[Sample], verdicts: pl.DataFrame, treatment: Treatment | None = None
) -> list[Score]:
    """Scores of one metric, one per sample, from its own `verdicts` rows."""
    found = _one_method(_by_item(verdicts))
    return [score_one(metric, sample, found.get(sample.item_id, []), treatment or Treatment()) for sample in samples]


def score_one(metric: Metric, sample: Sample, verdicts: Sequence[Verdict], treatment: Treatment = Treatment()) -> Score:
    """The score of one response: by the input policy where that settles it, else by the metric."""
    settled = screen(metric, sample, treatment.no_response, treatment.no_claims)
    if settled is not None:
        return settled
    undecomposed = (sample.claim_outcomes.get(source) == Outcome.NOT_ASKED for source in metric.decomposes)
    if any(undecomposed) or any(one.outcome == Outcome.NOT_ASKED for one in verdicts):
        return Score(ScoreStatus.NOT_ASKED, lower=0.0, upper=1.0, outcomes=(Outcome.NOT_ASKED,))
    return metric.score(sample, verdicts)


def remarks(scores: pl.DataFrame, verdicts: pl.DataFrame, metrics: Mapping[str, Metric]) -> list[tuple[str, str]]:
    """What to say, in English and Korean, about how far the metrics of an evaluation can carry."""
    found = [g_eval.steps_remark(name, metric) for name, metric in metrics.items()]
    found += [_method_remark(name, verdicts.filter(pl.col("metric") == name)) for name in metrics]
    return [*(one for one in found if one is not None), *_order_remarks(scores, metrics)]


def _order_remarks(scores: pl.DataFrame, metrics: Mapping[str, Metric]) -> list[tuple[str, str]]:
    """Remarks on pairwise metrics whose judge follows the order of presentation."""
    found = []
    for name, metric in metrics.items():
        if metric.template_ids != pairwise_preference.TEMPLATES:
            continue
        rows = scores.filter((pl.col("metric") == name) & pl.col("value").is_not_null())
        stored = [
            Score(ScoreStatus(status), value, components=json.loads(components))
            for status, value, components in rows.select("status", "value", "components").iter_rows()
        ]
        found.append(pairwise_preference.order_remark(name, pairwise_preference.order_summary(stored)))
    return [one for one in found if one is not None]


def _by_item(verdicts: pl.DataFrame) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = defaultdict(list)
    wanted = ["item_id", "part_source", "part_index", "template_id", "sample_index", "expects", "outcome", "grade", "value",
              "method", "reason", "texts", "is_noncommittal"]  # fmt: skip
    for stored in verdicts.select(wanted).iter_rows(named=True):
        found[stored["item_id"]].append(verdict(stored))
    return found


def _method_remark(name: str, of_metric: pl.DataFrame) -> tuple[str, str] | None:
    """Of a metric that was asked by log-probabilities and did not get them everywhere."""
    methods = of_metric.filter(pl.col("value").is_not_null())["method"]
    count, plain = len(methods), int((methods == GradeMethod.SINGLE).sum())
    if not plain or not (methods == GradeMethod.LOG_PROBABILITY).any():
        return None
    english = (
        f"method: {name}: {plain} of {count} grades came without log-probabilities, so all are read as plain grades"
    )
    korean = f"방식: {name}: 등급 {count}개 중 {plain}개에 로그 확률이 없어 모두 등급 그대로 읽었습니다"
    return english, korean


def _one_method(of_metric: Mapping[str, list[Verdict]]) -> Mapping[str, list[Verdict]]:
    """One metric in one run uses one method: where some grades lack log-probabilities, all are read as plain grades."""
    methods = {one.method for verdicts in of_metric.values() for one in verdicts if one.value is not None}
    if not {GradeMethod.LOG_PROBABILITY, GradeMethod.SINGLE} <= methods:
        return of_metric
    return {item_id: [_plain(one) for one in verdicts] for item_id, verdicts in of_metric.items()}


def _plain(one: Verdict) -> Verdict:
    return replace(one, value=None, method=GradeMethod.SINGLE) if one.method == GradeMethod.LOG_PROBABILITY else one


def _row(value: Score, metric: Metric, sample: Sample) -> dict[str, object]:
    lost = None
    if value.status == ScoreStatus.SCORED_SINGLE and (value.grade_1 is None) != (value.grade_2 is None):
        lost = 1 if value.grade_1 is None else 2
    return {
        "status": value.status.value,
        "value": value.value,
        "lower": value.lower,
        "upper": value.upper,
        "reason": value.reason,
        "grade_1": value.grade_1,
        "grade_2": value.grade_2,
        "disagreement": value.disagreement,
        "lost_side": lost,
        "part_count": value.part_count,
        "valid_part_count": value.valid_part_count,
        "components": json.dumps(dict(value.components), sort_keys=True),
        "outcomes": [outcome.value for outcome in value.outcomes],
        "content_sha256": content_sha256({name: getattr(sample, name) for name in metric.needs}),
    }
