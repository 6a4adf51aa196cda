"""How far one evaluation can be trusted: which judge may judge, the judge against people, and the gate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from eval_pipeline.asking import Asker
from eval_pipeline.evaluation import canary, evidence
from eval_pipeline.evaluation.judges import first_stop
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets
from eval_pipeline.llm.admission import admit as admit_judge
from eval_pipeline.metrics.declaration import Metric, Sample
from eval_pipeline.stages import calibration, decomposition, gating, judging, scoring, true_quality
from eval_pipeline.stages.sampling import CLAIMS_METRIC, LABELS, with_claims
from eval_pipeline.stages.versioning import detect_language
from eval_pipeline.stats.quality import CorrectedQuality
from eval_pipeline.store import evidence as store_evidence
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CALIBRATIONS, GATE_DECISIONS, LABEL_SCORES, SCORES, SUMMARIES, VERDICTS
from eval_pipeline.vocabulary import Language, Policy, Provenance

if TYPE_CHECKING:
    from eval_pipeline.evaluation.steps import Evaluation


def admit(project: Project, system: str, judges: Sequence[str]) -> list[tuple[str, str]]:
    """Remarks, in English and Korean, about the judges of a run.

    Raises:
        SelfEvaluation: a judge is a model inside the system.
        FloatingJudge: a judge names an alias that moves and does not say so.
    """
    models = project.config.systems[system].models
    remarks: list[tuple[str, str]] = []
    for name in judges:
        config = project.config.judges[name]
        if config.provider not in {"embedded", "nli"}:
            remarks += admit_judge(name, config.model, system, models, allow_floating=config.allow_floating)
    return remarks


def label_samples(labels: pl.DataFrame) -> dict[str, Sample]:
    """The labelled texts of one metric as samples, by content hash: what people saw, whatever the run at hand answered."""
    found: dict[str, Sample] = {}
    for sha, texts in labels.select("content_sha256", "texts").iter_rows():
        if sha not in found:
            found[sha] = _sample(sha, json.loads(texts))
    return found


def _sample(sha: str, fields: dict[str, object]) -> Sample:
    known = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
             if name in Sample.__dataclass_fields__ and name not in {"item_id", "language"}}  # fmt: skip
    text = " ".join(value for value in fields.values() if isinstance(value, str))
    language = fields.get("language")
    chosen = Language(language) if language in {"ko", "en"} else detect_language(text)
    return Sample(item_id=sha, language=chosen, **known)  # pyright: ignore[reportArgumentType]


async def judge_labels(evaluation: Evaluation, labels: pl.DataFrame) -> pl.DataFrame:
    """`label_scores` rows: the labelled texts by this evaluation's judges.

    The ledger answers what was asked before, so a label set is paid for once per judge key. The verdicts are kept with
    the evaluation's own, under `labels: <metric>`, and what stopped them stops the run.
    """
    async with evaluation.bench(payer=evaluation.payers()[1]) as bench:
        askers = evaluation.askers(bench)
        rows, verdicts = await ask_about_labels(evaluation, labels, askers)
    evaluation.warehouse.write(VERDICTS, evaluation.evaluation_id, verdicts, part="labels", replace=True)
    evaluation.warehouse.write(LABEL_SCORES, evaluation.evaluation_id, rows, replace=True)
    evaluation.remember(first_stop(askers, bench))
    return rows


async def ask_about_labels(
    evaluation: Evaluation, labels: pl.DataFrame, askers: Mapping[str, Asker]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`label_scores` rows, and the verdicts they rest on."""
    rows: list[dict[str, object]] = []
    keys = evaluation.judge_keys()
    kept = [VERDICTS.frame()]
    metrics = {name: metric for name, metric in evaluation.metrics().items() if (labels["metric"] == name).any()}
    by_metric = {name: label_samples(labels.filter(pl.col("metric") == name)) for name in metrics}
    evaluation.progress.begin("calibrations", sum(map(len, by_metric.values())))
    for name, metric in metrics.items():
        whole, verdicts = await _asked(evaluation, name, metric, list(by_metric[name].values()), askers)
        kept.append(verdicts.with_columns(pl.lit(f"{LABELS}{name}").alias("metric")))
        own = verdicts.filter(pl.col("metric") == name)
        for sample, score in zip(
            whole, scoring.values(metric, whole, own, evaluation.treatments().get(name)), strict=True
        ):
            evaluation.progress.advance()
            rows.append({
                "evaluation_id": evaluation.evaluation_id, "metric": name, "content_sha256": sample.item_id,
                "judge_key": keys[name], "value": score.value,
            })  # fmt: skip
    return LABEL_SCORES.frame(rows), pl.concat(kept)


async def _asked(
    evaluation: Evaluation, name: str, metric: Metric, whole: list[Sample], askers: Mapping[str, Asker]
) -> tuple[list[Sample], pl.DataFrame]:
    """The samples with the claims the metric needs, and all verdicts about them."""
    judge, asker, frames = evaluation.judge_of(name), askers[evaluation.judge_of(name)], [VERDICTS.frame()]
    if metric.decomposes:  # by the run's own judge, as the claims of the responses are
        origin = evaluation.origin(CLAIMS_METRIC, None, evaluation.judge)
        claims, own = await decomposition.decompose(whole, metric.decomposes, askers[evaluation.judge], origin)
        whole = with_claims(whole, claims, own)
        frames.append(own)
    origin = evaluation.origin(name, evaluation.judge_keys()[name], judge)
    frames += [frame async for frame in judging.judge(whole, {name: metric}, {name: asker}, {name: origin})]
    return whole, pl.concat(frames)


def calibrate(evaluation: Evaluation, labels: pl.DataFrame) -> pl.DataFrame:
    """`calibrations` rows of this evaluation's judges, kept in the warehouse by judge key."""
    keys, metrics = evaluation.judge_keys(), evaluation.metrics()
    judges = {
        name: calibration.JudgeOnMetric(
            str(keys[name]), evaluation.judge_of(name), evaluation.identity(evaluation.judge_of(name)).model
        )
        for name in metrics
        if keys[name] is not None
    }
    judged = asyncio.run(judge_labels(evaluation, labels))
    if evaluation.is_stopped():
        return CALIBRATIONS.frame()  # some labels are unasked: what the others say must not certify anyone
    config, folder = evaluation.project.config.calibration, evaluation.project.dataset_folder(evaluation.dataset)
    history = pl.concat([evaluation.warehouse.read(CALIBRATIONS), store_evidence.read_calibrations(folder)])
    frame = calibration.calibrate(
        labels, judged, judges, bar=calibration.Bar(config.bar, config.minimum_labels, config.minimum_off_modal),
        evaluation_id=evaluation.evaluation_id, now=datetime.now(UTC), history=history,
    )  # fmt: skip
    frame = true_quality.attach(frame, _true_quality(evaluation, labels, judged))
    for (key,), rows in frame.group_by("judge_key"):
        evaluation.warehouse.write(CALIBRATIONS, str(key), rows, part=evaluation.evaluation_id, replace=True)
    store_evidence.add_calibrations(folder, frame.filter(pl.col("label_provenance") == Provenance.HUMAN))
    return frame


def _true_quality(evaluation: Evaluation, labels: pl.DataFrame, judged: pl.DataFrame) -> dict[str, CorrectedQuality]:
    """What the labels say of true quality, beside the raw judge mean of each metric."""
    scores = evaluation.read(SCORES)
    cuts = {name: evaluation.metric_config(name).passes_from for name in evaluation.metrics()}
    return true_quality.estimate(
        scores, labels, older=true_quality.pairs_of_other_runs(labels, judged, scores),
        cuts={name: cut for name, cut in cuts.items() if cut is not None},
    )  # fmt: skip


def decide(evaluation: Evaluation, row: pl.DataFrame) -> pl.DataFrame:
    """`gate_decisions` rows of this evaluation under its run's policy."""
    policy = evaluation.options.policy
    case = gate_case(evaluation.project, row.to_dicts()[0], evaluation.warehouse, policy)
    frame = gating.rows(gating.decide(case), evaluation.evaluation_id, policy, datetime.now(UTC))
    evaluation.warehouse.write(GATE_DECISIONS, evaluation.evaluation_id, frame, replace=True)
    return frame


def _calibrations(warehouse: Warehouse, folder: Path, metric: str, judge_key: str) -> pl.DataFrame:
    """The rows of one judge on one metric: the warehouse's, and git's where the warehouse has none."""
    of_metric = pl.col("metric") == metric
    rows = warehouse.read(CALIBRATIONS, judge_key).filter(of_metric)
    if rows.height:
        return rows
    return store_evidence.read_calibrations(folder).filter(of_metric & (pl.col("judge_key") == judge_key))


def gate_case(project: Project, row: Mapping[str, Any], warehouse: Warehouse, policy: Policy) -> gating.Case:
    """What the gate looks at for one evaluation; `row` is its `evaluations` row."""
    evaluation_id, folder = row["evaluation_id"], project.dataset_folder(row["dataset"])
    metrics = project.metrics(tuple(name for name in row["metrics"] if name in project.config.metrics))
    keys = json.loads(row["judge_keys"])
    calibrations = [_calibrations(warehouse, folder, name, key) for name, key in keys.items() if key is not None]
    return gating.Case(
        evaluation=row,
        scores=warehouse.read(SCORES, evaluation_id),
        summaries=warehouse.read(SUMMARIES, evaluation_id),
        calibrations=pl.concat([CALIBRATIONS.frame(), *calibrations]).sort("calibrated_at"),
        gate=project.config.gate,
        policy=policy,
        gated=tuple(name for name in metrics if project.config.metrics[name].gate),
        judged=tuple(name for name, metric in metrics.items() if metric.template_ids),
        accepted_judges=frozenset(store_evidence.accepted_judges(folder)),
        judges_of_record=evidence.judges_of_record(warehouse, row, store_evidence.judge_decisions(folder)),
        rot=tuple(datasets.moved(folder, row["dataset_tag"])),
        window=evidence.window(warehouse, row, project.config.gate.window),
        pinned=evidence.pinned(folder, project.config.gate.baseline),
        canaries=canary.compared(warehouse, row, project.config.gate.window),
    )
