"""The bridge over a change of judge: an older evaluation's stored responses, judged again by a newer one's judge.

Nothing is kept but the replies in the ledger: no evaluation is made, and the second look costs nothing.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from eval_pipeline.errors import JudgeOfRecordGone
from eval_pipeline.evaluation import dry_run, evidence, reading, trust
from eval_pipeline.evaluation.judges import first_stop, refuse_unanswerable
from eval_pipeline.evaluation.progress import Progress
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Evaluation, Options
from eval_pipeline.metrics.declaration import Sample
from eval_pipeline.stages import decomposition, judging, scoring
from eval_pipeline.stages.comparison import compare
from eval_pipeline.stages.sampling import CLAIMS_METRIC, samples, with_claims
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import GOLDEN_ITEMS, RESPONSES, SCORES, VERDICTS


@dataclass(frozen=True, slots=True)
class Bridge:
    """What there is to judge again, and by whom.

    Attributes:
        evaluation: stands for the older one under the newer one's judge, with the metrics whose judge differs.
        items, whole: the items that both evaluations have unchanged, and the older one's responses to them.
    """

    evaluation: Evaluation
    items: pl.DataFrame
    whole: list[Sample]

    def estimate(self) -> list[dict[str, Any]]:
        """What judging again takes, by metric, as `run --dry-run` has it."""
        return dry_run.estimate_samples(self.evaluation, self.whole)

    def scores(self) -> pl.DataFrame:
        """`scores` rows of the older responses by the newer judge.

        Raises:
            Stopped: the provider or a limit ended it; what was paid for is in the ledger.
        """
        return asyncio.run(self._scores())

    async def _scores(self) -> pl.DataFrame:
        evaluation, metrics = self.evaluation, self.evaluation.metrics()
        async with evaluation.bench() as bench:
            askers = evaluation.askers(bench)
            origin = evaluation.origin(CLAIMS_METRIC, None, evaluation.judge)
            wanted = decomposition.sources(list(metrics.values()))
            whole = with_claims(
                self.whole, *await decomposition.decompose(self.whole, wanted, askers[evaluation.judge], origin)
            )
            evaluation.progress.begin("verdicts", judging.count(whole, metrics))
            verdicts = [frame async for frame in evaluation.judged(whole, askers)]
        if stop := first_stop(askers, bench):
            raise stop
        return scoring.score(whole, self.items, pl.concat([VERDICTS.frame(), *verdicts]), metrics, evaluation.treatments(),
                             evaluation.judge_keys(), evaluation.evaluation_id)  # fmt: skip


def build(project: Project, old: str, new: str, progress: Progress) -> Bridge | None:
    """The bridge from one evaluation to another; null when the same judge judged what they share.

    Raises:
        JudgeOfRecordGone: the newer one's judge is no longer the one that is configured.
        Refused: the judge may not judge the older one's system.
    """
    older, newer = (reading.row(project, name) for name in (old, new))
    keys, before = json.loads(newer["judge_keys"]), json.loads(older["judge_keys"])
    differing = tuple(
        name for name in project.config.metrics if name in keys and name in before and keys[name] != before[name]
    )
    if not differing:
        return None
    judge = project.config.judge_name(newer["judge"])
    evaluation = Evaluation(project, f"bridge {old} {new}", older["dataset"], older["dataset_version"], older["system"],
                            judge, datetime.now(UTC), Options(metrics=differing), progress)  # fmt: skip
    today = evaluation.judge_keys()
    if changed := [name for name in differing if today[name] != keys[name]]:
        raise JudgeOfRecordGone(judge=judge, evaluation=new, metrics=", ".join(changed))
    refuse_unanswerable(project, judge, evaluation.metrics())
    if older["system"] in project.config.systems:
        trust.admit(project, older["system"], evaluation.judges())
    warehouse = evaluation.warehouse
    shared = warehouse.read(SCORES, old).join(warehouse.read(SCORES, new), on=["item_id", "item_sha256"], how="semi")
    items = warehouse.read(GOLDEN_ITEMS, older["dataset"]).filter(
        (pl.col("dataset_version") == older["dataset_version"]) & pl.col("item_id").is_in(shared["item_id"].unique().to_list())
    )  # fmt: skip
    return Bridge(evaluation, items, samples(items, warehouse.read(RESPONSES, old), evidence.rivals(evaluation)))


def paired(project: Project, old: str, new: str, again: pl.DataFrame | None = None) -> list[dict[str, Any]]:
    """One row per metric as `comparison.compare` gives it.

    Args:
        again: scores of the older evaluation that take the place of its own.
    """
    before, after = (Warehouse(project.warehouse).read(SCORES, name) for name in (old, new))
    if again is not None:
        before = pl.concat([before.join(again, on="metric", how="anti"), again])
    return compare(before, after)
