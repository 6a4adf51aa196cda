"""Asks a judge on an endpoint some frozen questions anew each night, past the ledger, and finds what to compare them with.

The reference is the oldest complete evaluation by the same judge key: its texts are sent again, its replies are compared.
An `occasion` keeps the questions apart in the ledger, so a resumed night pays for none of them twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from eval_pipeline.evaluation.judges import first_stop
from eval_pipeline.metrics.declaration import Metric, Sample
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.stages import judging
from eval_pipeline.stages.gating import canary
from eval_pipeline.stages.sampling import samples, with_claims
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import CLAIMS, GOLDEN_ITEMS, RESPONSES, VERDICTS
from eval_pipeline.vocabulary import Language, Policy

if TYPE_CHECKING:
    from eval_pipeline.evaluation.steps import Evaluation

PREFIX = canary.PREFIX


def skipped(evaluation: Evaluation, metric: str) -> str | None:
    """Why a metric's judge is not asked anew in this evaluation, in the project's language; null when it is."""
    config = evaluation.project.config
    declared = evaluation.metrics()[metric]
    reasons = {
        ("it asks no judge", "심판에게 묻지 않는 지표"): not declared.template_ids,
        ("the judge answers in this process and cannot change", "이 프로세스 안의 심판이라 바뀔 수 없음"):
            not config.judges[evaluation.judge_of(metric)].has_endpoint,
        ("canary_size is 0", "canary_size가 0"): not config.canary_size,
        ("only nightly and release runs ask", "nightly와 release 실행에서만 물음"): evaluation.options.policy == Policy.PR,
        ("the run is limited", "항목 수를 제한한 실행"): evaluation.options.limit is not None,
        ("the rival's responses change", "비교 상대의 응답이 바뀜"): "rival_response" in declared.needs,
    }  # fmt: skip
    said = next((words for words, holds in reasons.items() if holds), None)
    return said and said[config.language == Language.KO]


def frozen(evaluation: Evaluation, foreseen: list[Sample] | None = None) -> dict[str, list[Sample]]:
    """The frozen samples of each metric that is asked anew: texts, responses and claims of its reference.

    Args:
        foreseen: for a dry run: the samples about to be judged, all of which count as graded where they would be asked.
    """
    found: dict[str, list[Sample]] = {}
    rows = evaluation.warehouse.evaluations()
    for metric, key in evaluation.judge_keys().items():
        if skipped(evaluation, metric) is None:
            row = _reference(rows, evaluation.dataset, metric, key)
            if row is not None:
                items, whole, verdicts = _stored(evaluation.warehouse, row)
                graded = canary.graded(verdicts, metric)
            elif foreseen is not None:
                items, whole, declared = evaluation.items(), foreseen, evaluation.metrics()[metric]
                graded = {sample.item_id for sample in whole if screen(declared, sample) is None}
            else:  # the first by this judge key: its own replies are the reference
                items, whole = evaluation.items(), evaluation.samples()
                graded = canary.graded(evaluation.read(VERDICTS), metric)
            ids = set(canary.chosen(items, graded, evaluation.project.config.canary_size))
            found[metric] = [sample for sample in whole if sample.item_id in ids]
    return found


def ask(evaluation: Evaluation) -> None:
    """Asks the frozen questions and keeps the verdicts with the evaluation's own, under `canary: <metric>`."""
    if evaluation.is_stopped():
        return
    work = frozen(evaluation)
    if any(work.values()):
        asyncio.run(_ask(evaluation, work))


async def _ask(evaluation: Evaluation, work: Mapping[str, list[Sample]]) -> None:
    declared: Mapping[str, Metric] = evaluation.metrics()
    keys, kept = evaluation.judge_keys(), [VERDICTS.frame()]
    async with evaluation.bench(payer=evaluation.payers()[2]) as bench:
        askers = {
            name: replace(asker, occasion=evaluation.evaluation_id) for name, asker in evaluation.askers(bench).items()
        }
        for name, whole in work.items():
            judge = evaluation.judge_of(name)
            origin = evaluation.origin(f"{PREFIX}{name}", keys[name], judge)
            parts = judging.judge(whole, {name: declared[name]}, {name: askers[judge]}, {name: origin})
            kept += [frame async for frame in parts]
    evaluation.warehouse.write(VERDICTS, evaluation.evaluation_id, pl.concat(kept), part="canary", replace=True)
    evaluation.remember(first_stop(askers, bench))


def compared(warehouse: Warehouse, row: Mapping[str, Any], window: int) -> tuple[canary.Canary, ...]:
    """What the frozen questions of one evaluation say, by metric; empty when none were asked.

    Args:
        row: its `evaluations` row. window: earlier nights that tell how often an unchanged judge grades otherwise.
    """
    asked = _asked(warehouse, row["evaluation_id"])
    if asked.is_empty():
        return ()
    rows, found = warehouse.evaluations(), []
    for name in sorted(set(asked["metric"])):
        metric = name.removeprefix(PREFIX)
        first = _reference(rows, row["dataset"], metric, json.loads(row["judge_keys"])[metric]) or row
        reference = warehouse.read(VERDICTS, first["evaluation_id"])
        same = _same_judge(rows, row["dataset"], metric, json.loads(row["judge_keys"])[metric])
        before = [one["evaluation_id"] for one in same if one["started_at"] < row["started_at"]][-window:]
        earlier = [
            canary.compare(metric, first["evaluation_id"], reference, _asked(warehouse, one), None) for one in before
        ]
        floor = canary.flip_floor(earlier)
        found.append(canary.compare(metric, first["evaluation_id"], reference, asked, floor))
    return tuple(found)


def _asked(warehouse: Warehouse, evaluation_id: str) -> pl.DataFrame:
    return warehouse.scan(VERDICTS, evaluation_id).filter(pl.col("metric").str.starts_with(PREFIX)).collect()


def _same_judge(rows: pl.DataFrame, dataset: str, metric: str, key: str | None) -> list[dict[str, Any]]:
    """Complete evaluations of a dataset by the same judge key, oldest first."""
    whole = rows.filter((pl.col("dataset") == dataset) & ~pl.col("is_partial")).sort("started_at", "evaluation_id")
    return [row for row in whole.iter_rows(named=True) if key and json.loads(row["judge_keys"]).get(metric) == key]


def _reference(rows: pl.DataFrame, dataset: str, metric: str, key: str | None) -> dict[str, Any] | None:
    return next(iter(_same_judge(rows, dataset, metric, key)), None)


def _stored(warehouse: Warehouse, row: Mapping[str, Any]) -> tuple[pl.DataFrame, list[Sample], pl.DataFrame]:
    """Items, samples and verdicts of a finished evaluation."""
    version = pl.col("dataset_version") == row["dataset_version"]
    items = warehouse.read(GOLDEN_ITEMS, row["dataset"]).filter(version)
    verdicts = warehouse.read(VERDICTS, row["evaluation_id"])
    whole = samples(items, warehouse.read(RESPONSES, row["evaluation_id"]))
    return items, with_claims(whole, warehouse.read(CLAIMS, row["evaluation_id"]), verdicts), verdicts
