"""The steps of one evaluation, in order. Each reads its tables, calls its stage, writes its table; a re-run replaces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed
from pathlib import Path

import polars as pl

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ModelIdentity
from eval_pipeline.config import MetricConfig, SystemConfig
from eval_pipeline.errors import EmptyDataset, Stopped, SystemMisconfigured
from eval_pipeline.evaluation import canary, evidence, trust
from eval_pipeline.evaluation.judges import (
    Bench,
    Limits,
    build_judge,
    first_stop,
    judge_keys,
    open_bench,
    paid,
    refuse_unanswerable,
    system_model,
)
from eval_pipeline.evaluation.partitions import configuration_key
from eval_pipeline.evaluation.progress import Progress, Silent
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets
from eval_pipeline.metrics.declaration import Metric, Sample
from eval_pipeline.stages import aggregation, decomposition, judging, scoring
from eval_pipeline.stages.sampling import CLAIMS_METRIC, LABELS, samples, with_claims
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.systems.journal import Journal
from eval_pipeline.systems.source import build_source, fetch, release
from eval_pipeline.tables import (
    CLAIMS,
    DATASET_CHANGES,
    DATASET_VERSIONS,
    EVALUATIONS,
    GOLDEN_ITEMS,
    HUMAN_LABELS,
    RESPONSES,
    SCORES,
    SUMMARIES,
    VERDICTS,
)  # fmt: skip
from eval_pipeline.verdict_rows import Origin
from eval_pipeline.vocabulary import Policy

STOPPED = "stopped: "
"""How `partial_reason` begins when the provider or a limit ended the run: exit code 5, resumable."""


@dataclass(frozen=True, slots=True)
class Options:
    """What one run may do differently from the configuration."""

    limit: int | None = None
    metrics: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    policy: Policy = Policy.PR
    retry_invalid: bool = False
    refresh: bool | None = None
    batch: bool = False
    responses_of: str | None = None
    """The evaluation whose stored responses are judged anew; null asks the system."""


@dataclass(slots=True)
class Evaluation:
    """One evaluation of one system release on one dataset version by one judge.

    Attributes:
        dataset, tag, system, judge: names as in evaluation.yaml; `tag` may be a tag, a hash or `latest`.
        system_release: as read once for the whole evaluation; empty reads it when it is needed.
    """

    project: Project
    evaluation_id: str
    dataset: str
    tag: str
    system: str
    judge: str
    started_at: datetime
    options: Options = Options()
    progress: Progress = field(default_factory=Silent)
    system_release: str = ""

    # What everything below needs ---------------------------------------------------------------------------------

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.project.warehouse)

    @property
    def system_config(self) -> SystemConfig:
        return self.project.config.systems[self.system]

    def metrics(self) -> dict[str, Metric]:
        return self.project.metrics(self.options.metrics)

    def metric_config(self, name: str) -> MetricConfig:
        return self.project.config.metrics[name]

    def judge_of(self, metric: str) -> str:
        return self.metric_config(metric).judge or self.judge

    def judges(self) -> tuple[str, ...]:
        return tuple(sorted({self.judge, *(self.judge_of(name) for name in self.metrics())}))

    def identity(self, judge: str) -> ModelIdentity:
        return build_judge(judge, self.project.config.judges[judge], self.project).identity

    def judge_keys(self) -> dict[str, str | None]:
        """Judge key by metric."""
        return judge_keys(self.project, self.judge, self.metrics())

    def read(self, table, value: str | None = None) -> pl.DataFrame:  # noqa: ANN001
        return self.warehouse.read(table, value or self.evaluation_id)

    # The steps ---------------------------------------------------------------------------------------------------

    def golden_items(self) -> pl.DataFrame:
        """The dataset version, limited as asked, kept in the warehouse once.

        Raises:
            Refused: the judge may not judge this system, or the dataset is empty.
        """
        trust.admit(self.project, self.system, self.judges())
        refuse_unanswerable(self.project, self.judge, self.metrics())
        version = datasets.load(self.project.dataset_folder(self.dataset), self.tag)
        if version.items.is_empty():
            raise EmptyDataset(name=self.dataset)
        folder = self.project.dataset_folder(self.dataset)
        for table, frame in (
            (GOLDEN_ITEMS, version.items),
            (DATASET_VERSIONS, datasets.version_rows(folder)),
            (DATASET_CHANGES, datasets.change_rows(folder)),
        ):
            self.warehouse.write(table, self.dataset, frame, part=version.dataset_version[:16], replace=True)
        return self.items()

    def items(self) -> pl.DataFrame:
        """The items of this evaluation: the version's, the first `limit` of them by content hash when limited."""
        items = datasets.load(self.project.dataset_folder(self.dataset), self.tag).items
        if self.options.limit is None:
            return items
        return items.sort("content_sha256").head(self.options.limit).sort("item_id")

    def responses(self) -> pl.DataFrame:
        """What the system answers now, or answered before where responses are reused."""
        config, items = self.system_config, self.items()
        stored = self.read(RESPONSES)
        if set(stored["item_id"]) == set(items["item_id"]):
            return stored  # an earlier try has fetched them all, on whatever machine it ran
        if self.options.responses_of is not None:
            frame = evidence.stored_responses(self.warehouse, self.options.responses_of, items, self.evaluation_id)
            self.warehouse.write(RESPONSES, self.evaluation_id, frame, replace=True)
            return frame
        reused = self._earlier_responses(items)
        environment = self.project.environment
        model = system_model(self.system, config, environment)
        source = build_source(self.system, config, self.project.root, environment, chat_model=model)
        self.progress.begin("responses", items.height)
        with Journal(self.project.local / "journal" / f"{self.evaluation_id}.jsonl") as journal:
            frame = asyncio.run(
                fetch(items, source, journal, self.evaluation_id, reused=reused, max_in_flight=config.max_in_flight,
                      on_response=lambda _: self.progress.advance())
            )  # fmt: skip
        if config.source == "recorded" and frame["error"].eq_missing("no recorded response").all():
            reason = f"{config.path} holds no response to any of the {frame.height} items of {self.dataset}; name its own --system"
            raise SystemMisconfigured(system=self.system, reason=reason)
        self.warehouse.write(RESPONSES, self.evaluation_id, frame, replace=True)
        return frame

    def _earlier_responses(self, items: pl.DataFrame) -> dict[str, dict[str, object]]:
        """Rows by item of the newest complete evaluation of this system release that answered the same items."""
        reuse = self.system_config.responses == "reuse" if self.options.refresh is None else not self.options.refresh
        if not reuse:
            return {}
        return evidence.earlier_responses(self.warehouse, self.system, self.release(), items)

    def release(self) -> str:
        if not self.system_release:
            self.system_release = release(self.system_config, self.project.environment, self.system)
        return self.system_release

    def claims(self) -> pl.DataFrame:
        """Atomic claims of the texts that some metric needs, with decomposition's own verdicts."""
        self.forget_stop()
        wanted = decomposition.sources(list(self.metrics().values()))
        whole = samples(self.items(), self.read(RESPONSES))
        self.progress.begin("claims", sum(len(decomposition.questions(sample, wanted)) for sample in whole))
        claims, verdicts = asyncio.run(self._decompose(whole, wanted))
        self.warehouse.write(CLAIMS, self.evaluation_id, claims, replace=True)
        self.warehouse.write(VERDICTS, self.evaluation_id, verdicts, part="claims", replace=True)
        return claims

    async def _decompose(self, whole: list[Sample], wanted: tuple) -> tuple[pl.DataFrame, pl.DataFrame]:  # pyright: ignore[reportMissingTypeArgument]
        async with self.bench() as bench:
            asker = self.asker(bench, self.judge)
            result = await decomposition.decompose(whole, wanted, asker, self.origin(CLAIMS_METRIC, None, self.judge))
        self.remember(asker.stopped or bench.stopped)
        return result

    def verdicts(self) -> pl.DataFrame:
        """Every question of every metric, in parts of at most 1,000 items."""
        whole = self.samples()
        return asyncio.run(self._judge(whole))

    async def _judge(self, whole: list[Sample]) -> pl.DataFrame:
        self.progress.begin("verdicts", judging.count(whole, self.metrics()))
        async with self.bench() as bench:
            askers = self.askers(bench)
            part = 0
            async for frame in self.judged(whole, askers):
                self.warehouse.write(VERDICTS, self.evaluation_id, frame, part=part, replace=True)
                part += 1
        self.remember(first_stop(askers, bench))
        return self.read(VERDICTS)

    def scores(self) -> pl.DataFrame:
        """One score per metric and item, from the stored verdicts."""
        frame = scoring.score(
            self.samples(), self.items(), self.read(VERDICTS), self.metrics(), self.treatments(), self.judge_keys(),
            self.evaluation_id,
        )  # fmt: skip
        self.warehouse.write(SCORES, self.evaluation_id, frame, replace=True)
        return frame

    def summaries(self) -> pl.DataFrame:
        """Each metric over each stratum and over all."""
        strata = self.project.config.datasets[self.dataset].strata
        weights = {name: stratum.weight for name, stratum in strata.items() if stratum.weight is not None}
        policies = {
            name: aggregation.MetricPolicy(no_response=config.no_response, catastrophic=config.catastrophic)
            for name, config in self.project.config.metrics.items()
        }
        frame = aggregation.summarise(
            self.read(SCORES), evaluation_id=self.evaluation_id, policies=policies, weights=weights or None
        )
        self.warehouse.write(SUMMARIES, self.evaluation_id, frame, replace=True)
        return frame

    def calibrations(self) -> pl.DataFrame:
        """The judge against the labels, each with its own texts, and against its own earlier replies (the canary)."""
        labels = datasets.labels(self.project.dataset_folder(self.dataset), self.dataset)
        if not labels.is_empty():
            self.warehouse.write(HUMAN_LABELS, self.dataset, labels, replace=True)
        frame = trust.calibrate(self, labels)
        canary.ask(self)
        return frame

    def gate_decisions(self) -> pl.DataFrame:
        """The gate under this run's policy; then the evaluation's own row, last."""
        row = self.evaluation_row()
        frame = trust.decide(self, row)
        self.warehouse.write(EVALUATIONS, self.evaluation_id, row, replace=True)
        return frame

    # Parts -------------------------------------------------------------------------------------------------------

    def samples(self) -> list[Sample]:
        whole = samples(self.items(), self.read(RESPONSES), evidence.rivals(self))
        return with_claims(whole, self.read(CLAIMS), self.read(VERDICTS))

    def treatments(self) -> dict[str, scoring.Treatment]:
        configs = self.project.config.metrics
        return {name: scoring.Treatment(config.no_response, config.no_claims) for name, config in configs.items()}

    def origin(self, metric: str, judge_key: str | None, judge: str) -> Origin:
        return Origin(self.evaluation_id, metric, judge, self.identity(judge).model, judge_key)

    def bench(self, limits: Limits | None = None, payer: str | None = None) -> AbstractAsyncContextManager[Bench]:
        """The judges, within what is left of the limits and on this evaluation's account unless said otherwise."""
        return open_bench(
            self.project, self.judges(), limits or self.limits_left(), payer=payer or self.evaluation_id,
            in_batches=self.options.batch,
        )  # fmt: skip

    def askers(self, bench: Bench) -> dict[str, Asker]:
        """One asker a judge."""
        return {name: self.asker(bench, name) for name in self.judges()}

    def judged(self, whole: list[Sample], askers: Mapping[str, Asker]) -> AsyncIterator[pl.DataFrame]:
        """`verdicts` rows of every metric about these samples, in parts."""
        metrics, keys = self.metrics(), self.judge_keys()
        origins = {name: self.origin(name, keys[name], self.judge_of(name)) for name in metrics}
        by_metric = {name: askers[self.judge_of(name)] for name in metrics}
        return judging.judge(whole, metrics, by_metric, origins, lambda _: self.progress.advance())

    def asker(self, bench: Bench, judge: str) -> Asker:
        config = self.project.config.judges[judge]
        return Asker(bench.judges[judge], bench.embedding, config.attempts, self.options.retry_invalid)

    def limits(self) -> Limits:
        """The limits of this run, else those of the configuration."""
        given, configured = self.options.limits, self.project.config.limits
        return Limits(
            configured.max_calls if given.max_calls is None else given.max_calls,
            configured.max_cost_usd if given.max_cost_usd is None else given.max_cost_usd,
        )

    def limits_left(self) -> Limits:
        """The limits less what this evaluation already spent, in earlier tries too."""
        return self.limits().less(paid(self.project, self.payers()))

    def payers(self) -> tuple[str, str, str]:
        """The accounts of this evaluation in the ledger: its own questions, those about labelled texts, and the canary's."""
        return self.evaluation_id, f"{LABELS}{self.evaluation_id}", f"{canary.PREFIX}{self.evaluation_id}"

    def _stop_file(self) -> Path:
        return self.project.local / "journal" / f"{self.evaluation_id}.stopped"

    def remember(self, stop: Stopped | None) -> None:
        """Keeps what first stopped the run: a later step finds nothing left and would say less."""
        if stop is not None and not self.is_stopped():
            self._stop_file().write_text(f"{STOPPED}{stop}", encoding="utf-8")

    def forget_stop(self) -> None:
        """Before another try."""
        self._stop_file().unlink(missing_ok=True)

    def is_stopped(self) -> bool:
        return self._stop_file().exists()

    def partial_reason(self) -> str | None:
        if self.is_stopped():
            return self._stop_file().read_text(encoding="utf-8")
        if self.options.limit is not None:
            return f"limited to {self.options.limit} items"
        left_out = sorted(set(self.project.config.metrics) - set(self.metrics()))
        return f"without {', '.join(left_out)}" if left_out else None

    def evaluation_row(self) -> pl.DataFrame:
        """The `evaluations` row as of now."""
        version = datasets.load(self.project.dataset_folder(self.dataset), self.tag)
        verdicts, responses = self.read(VERDICTS), self.read(RESPONSES)
        spent = paid(self.project, self.payers())
        scoring_sha256 = self.project.config.scoring_sha256(self.system, self.judge)
        reason = self.partial_reason()
        remarks = [
            *trust.admit(self.project, self.system, self.judges()),
            *scoring.remarks(self.read(SCORES), verdicts, self.metrics()),
        ]
        return EVALUATIONS.frame([{
            "evaluation_id": self.evaluation_id,
            "dataset": self.dataset,
            "dataset_version": version.dataset_version,
            "dataset_tag": version.tag,
            "system": self.system,
            "system_release": self.release(),
            "configuration": configuration_key(self.system, self.release(), self.judge, scoring_sha256),
            "judge": self.judge,
            "judge_model": self.identity(self.judge).model,
            "judge_keys": json.dumps(self.judge_keys(), sort_keys=True),
            "metrics": sorted(self.metrics()),
            "config_sha256": scoring_sha256,
            "versions": json.dumps(_versions(), sort_keys=True),
            "started_at": self.started_at,
            "finished_at": datetime.now(UTC),
            "item_count": self.items().height,
            "call_count": spent.call_count,
            "cached_count": int(verdicts["is_cached"].sum()),
            "cost_usd": spent.cost_usd,
            "is_partial": reason is not None,
            "partial_reason": reason,
            "is_replay": bool(responses["is_reused"].all()) and not paid(self.project, self.payers()[:1]).call_count,
            "is_unpinned": any(self.project.config.judges[name].allow_floating for name in self.judges()),
            "warnings": [english for english, _ in remarks],
            "warnings_ko": [korean for _, korean in remarks],
        }])  # fmt: skip


def _versions() -> Mapping[str, str]:
    return {
        name: installed(name) for name in ("eval-pipeline", "dagster", "duckdb", "polars", "openai", "scipy", "numpy")
    }


def with_options(evaluation: Evaluation, **changes: object) -> Evaluation:
    """The same evaluation with other options."""
    return replace(evaluation, options=replace(evaluation.options, **changes))  # pyright: ignore[reportArgumentType]
