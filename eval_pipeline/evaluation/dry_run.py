"""What a run would ask, before anything is sent: questions, ledger hits, calls, tokens and cost by metric."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.evaluation import canary, evidence, trust
from eval_pipeline.evaluation.judges import build_judge, refuse_unanswerable
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Evaluation, Options
from eval_pipeline.intake import datasets
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.ledgered_chat import ledger_key
from eval_pipeline.llm.prices import BATCH_SHARE, cost
from eval_pipeline.llm.tokens import estimate as token_estimate
from eval_pipeline.metrics.declaration import Metric, Sample
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.stages import decomposition
from eval_pipeline.stages.sampling import CLAIMS_METRIC, LABELS, samples, with_claims
from eval_pipeline.systems.journal import Journal
from eval_pipeline.systems.source import build_source, fetch
from eval_pipeline.vocabulary import Outcome, PartSource, Policy

OUTPUT_TOKENS = 8
"""A grade as JSON."""
CLAIMS_RANGE = (1, 8)
"""Claims per text, where they are not made yet: the range of the estimate."""


@dataclass(slots=True)
class _Counter:
    """A chat model that answers what the ledger holds and counts the rest as calls; the same question twice is one call.

    Attributes:
        tokens: input tokens of the calls, by estimate.
        known_estimate, known_tokens: the same for the ledger's replies, and what the provider counted for them.
    """

    identity: ModelIdentity
    ledger: Ledger | None
    seen: set[str]
    questions: int = 0
    calls: int = 0
    tokens: int = 0
    known_estimate: int = 0
    known_tokens: int = 0

    async def reply(self, request: ChatRequest) -> ChatReply:
        self.questions += request.attempt == 0
        key = ledger_key(self.identity, request)
        stored = self.ledger.get(key) if self.ledger is not None else None
        tokens = sum(token_estimate(message["content"]) + 4 for message in request.messages)
        if stored is not None:
            if stored.input_tokens:
                self.known_estimate += tokens
                self.known_tokens += stored.input_tokens
            return stored
        if key not in self.seen:
            self.seen.add(key)
            self.calls += 1
            self.tokens += tokens
        return ChatReply("", Outcome.REFUSED)


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the estimate; `spread` is how many more calls there may be."""

    name: str
    judge: str
    counter: _Counter
    spread: int


def estimate(project: Project, dataset: str | None, system: str | None, judge: str | None, metrics: tuple[str, ...] = (),
             limit: int | None = None, policy: Policy = Policy.PR, responses_of: str | None = None) -> list[dict[str, Any]]:  # fmt: skip
    """One row per metric, decomposition's own, and one per labelled metric for its calibration, one per canary.

    Exact before re-asks where `calls` equals `calls_at_most`. Where claims are not made yet `calls` reckons with one
    claim a text and `calls_at_most` with eight. Sends nothing to a judge; only recorded systems are read, others count
    as answering.
    """
    name, _, tag = (dataset or "").partition("@")
    chosen = project.config.dataset_name(name or None)
    evaluation = Evaluation(
        project, "dry-run", chosen, tag or project.config.datasets[chosen].tag, project.config.system_name(system),
        project.config.judge_name(judge), datetime.now(UTC),
        Options(limit, metrics, policy=policy, responses_of=responses_of),
    )  # fmt: skip
    return asyncio.run(_estimate(evaluation))


def estimate_samples(evaluation: Evaluation, whole: list[Sample]) -> list[dict[str, Any]]:
    """The same for samples at hand: decomposition and the evaluation's metrics, no labels and no canary."""
    lines, _ = asyncio.run(_questions(evaluation, whole, _ledger(evaluation.project), set()))
    return _rows(evaluation, lines)


def _ledger(project: Project) -> Ledger | None:
    # Asking for it creates the file; a dry run writes nothing where nothing was asked yet.
    is_new = project.ledger_url.startswith("sqlite") and not (project.local / "ledger.sqlite").exists()
    return None if is_new else Ledger(project.ledger_url)


async def _questions(
    evaluation: Evaluation, whole: list[Sample], ledger: Ledger | None, seen: set[str]
) -> tuple[list[_Line], list[Sample]]:
    """The lines of decomposition and of each metric, and the samples with the claims that the ledger knows."""
    declared = evaluation.metrics()
    lines: list[_Line] = []
    wanted = decomposition.sources(list(declared.values()))
    if wanted:
        counter, asker = _counting(evaluation, evaluation.judge, ledger, seen)
        whole = await _claimed(evaluation, whole, wanted, asker)
        lines.append(_Line(CLAIMS_METRIC, evaluation.judge, counter, 0))
    for name, metric in declared.items():
        counter, asker = _counting(evaluation, evaluation.judge_of(name), ledger, seen)
        lines.append(_Line(name, evaluation.judge_of(name), counter, await _ask(whole, metric, asker)))
    return lines, whole


async def _estimate(evaluation: Evaluation) -> list[dict[str, Any]]:
    declared = evaluation.metrics()
    refuse_unanswerable(evaluation.project, evaluation.judge, declared)
    ledger = _ledger(evaluation.project)
    seen: set[str] = set()  # what an earlier line of the estimate already asks is in the ledger by then
    lines, whole = await _questions(evaluation, await _samples(evaluation), ledger, seen)
    labels = datasets.labels(evaluation.project.dataset_folder(evaluation.dataset), evaluation.dataset)
    for name, metric in declared.items():
        labelled = list(trust.label_samples(labels.filter(pl.col("metric") == name)).values())
        if not labelled:
            continue
        counter, asker = _counting(evaluation, evaluation.judge_of(name), ledger, seen)
        if metric.decomposes and evaluation.judge_of(name) == evaluation.judge:
            labelled = await _claimed(evaluation, labelled, metric.decomposes, asker)
        elif metric.decomposes:
            maker, claiming = _counting(evaluation, evaluation.judge, ledger, seen)
            labelled = await _claimed(evaluation, labelled, metric.decomposes, claiming)
            lines.append(_Line(f"{LABELS}{CLAIMS_METRIC} ({name})", evaluation.judge, maker, 0))
        lines.append(_Line(f"{LABELS}{name}", evaluation.judge_of(name), counter, await _ask(labelled, metric, asker)))
    for name, frozen in canary.frozen(evaluation, whole).items():
        counter, asker = _counting(evaluation, evaluation.judge_of(name), ledger, seen)
        await _ask(frozen, declared[name], replace(asker, occasion=evaluation.evaluation_id))
        lines.append(_Line(f"{canary.PREFIX}{name}", evaluation.judge_of(name), counter, 0))
    return _rows(evaluation, lines)


def _rows(evaluation: Evaluation, lines: list[_Line]) -> list[dict[str, Any]]:
    return [
        _row(evaluation, line, _correction([one.counter for one in lines if one.judge == line.judge])) for line in lines
    ]


async def _claimed(
    evaluation: Evaluation, whole: list[Sample], wanted: tuple[PartSource, ...], asker: Asker
) -> list[Sample]:
    """The samples with the claims that the ledger knows."""
    origin = evaluation.origin(CLAIMS_METRIC, None, evaluation.judge)
    return with_claims(whole, *await decomposition.decompose(whole, wanted, asker, origin))


async def _ask(whole: list[Sample], metric: Metric, asker: Asker) -> int:
    """Asks the counter all questions; returns how many more there may be where claims are not made yet."""
    spread = 0
    for sample in whole:
        low, high = (_completed(sample, metric, count) for count in CLAIMS_RANGE)
        if screen(metric, low) is None:
            questions = metric.questions(low)
            spread += len(metric.questions(high)) - len(questions)
            for question in questions:
                await asker.ask(question, sample.language)
    return spread


def _counting(evaluation: Evaluation, judge: str, ledger: Ledger | None, seen: set[str]) -> tuple[_Counter, Asker]:
    config = evaluation.project.config.judges[judge]
    identity = build_judge(judge, config, evaluation.project).identity
    if ledger is not None:
        ledger.preload(identity.model)
    counter = _Counter(identity, ledger, seen)
    return counter, Asker(counter, attempts=config.attempts)


async def _samples(evaluation: Evaluation) -> list[Sample]:
    """The items with recorded responses, or with a stand-in where the system would have to be asked."""
    config, items = evaluation.system_config, evaluation.items()
    if of := evaluation.options.responses_of:
        return samples(items, evidence.stored_responses(evaluation.warehouse, of, items, evaluation.evaluation_id))
    if config.source == "recorded":
        source = build_source(evaluation.system, config, evaluation.project.root, evaluation.project.environment)
        with Journal(evaluation.project.local / "journal" / "dry-run.jsonl") as journal:
            return samples(items, await fetch(items, source, journal, "dry-run"))
    return [
        Sample(item_id=row["item_id"], user_input=row["user_input"], reference=row["reference"], response=row["reference"] or "?",
               retrieved_contexts=tuple(row["reference_contexts"] or ("?",)))
        for row in items.iter_rows(named=True)
    ]  # fmt: skip


def _completed(sample: Sample, metric: Metric, count: int) -> Sample:
    """The sample with stand-ins for claims that are not made yet; claims the ledger knows are kept as they are."""
    unknown = [source for source in metric.decomposes if source not in sample.claims and _text(sample, source)]
    if not unknown:
        return sample
    stand_ins = {
        source: tuple(f"{index} {_text(sample, source)}"[:200] for index in range(count)) for source in unknown
    }
    outcomes = {source: outcome for source, outcome in sample.claim_outcomes.items() if source not in unknown}
    return replace(sample, claims={**sample.claims, **stand_ins}, claim_outcomes=outcomes)


def _text(sample: Sample, source: PartSource) -> str:
    return (sample.reference if source == PartSource.REFERENCE else sample.response) or ""


def _correction(counters: list[_Counter]) -> float:
    """How many tokens the provider counts for one of the estimate's, by what the ledger holds of the judge; 1 where it is silent."""
    estimated = sum(counter.known_estimate for counter in counters)
    return sum(counter.known_tokens for counter in counters) / estimated if estimated else 1.0


def _row(evaluation: Evaluation, line: _Line, correction: float) -> dict[str, Any]:
    counter, config = line.counter, evaluation.project.config.judges[line.judge]
    calls, tokens = counter.calls, round(counter.tokens * correction)
    output = calls * (OUTPUT_TOKENS if line.name != CLAIMS_METRIC else 10 * OUTPUT_TOKENS)
    price = 0.0 if config.provider == "nli" else cost(counter.identity.model, tokens, 0, output)
    return {
        "metric": line.name, "judge": line.judge, "questions": counter.questions, "from_ledger": counter.questions - calls,
        "calls": calls, "calls_at_most": calls + line.spread, "input_tokens": tokens, "output_tokens": output,
        "cost_usd": price if price is None or not config.batch else price * BATCH_SHARE,
    }  # fmt: skip
