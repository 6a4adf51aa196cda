"""What a run would ask, before anything is sent: questions, ledger hits, calls, tokens and cost by metric."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from eval_pipeline.asking import Asker
from eval_pipeline.chat import ChatReply, ChatRequest, ModelIdentity
from eval_pipeline.evaluation.judges import build_judge
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Evaluation, Options
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.ledgered_chat import ledger_key
from eval_pipeline.llm.prices import cost
from eval_pipeline.llm.tokens import estimate as token_estimate
from eval_pipeline.metrics.declaration import Metric, Question, Sample
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.stages import decomposition
from eval_pipeline.stages.sampling import CLAIMS_METRIC, samples
from eval_pipeline.systems.journal import Journal
from eval_pipeline.systems.source import build_source, fetch
from eval_pipeline.vocabulary import Outcome, PartSource

OUTPUT_TOKENS = 8
"""A grade as JSON."""
CLAIMS_RANGE = (1, 8)
"""Claims per text, where they are not made yet: the range of the estimate."""


@dataclass(slots=True)
class _Counter:
    """A chat model that answers nothing and counts what it would be asked."""

    identity: ModelIdentity
    ledger: Ledger | None
    questions: int = 0
    hits: int = 0
    tokens: int = 0

    async def reply(self, request: ChatRequest) -> ChatReply:
        self.questions += 1
        if self.ledger is not None and self.ledger.get(ledger_key(self.identity, request)) is not None:
            self.hits += 1
        else:
            self.tokens += sum(token_estimate(message["content"]) + 4 for message in request.messages)
        return ChatReply("", Outcome.REFUSED)


def estimate(project: Project, dataset: str | None, system: str | None, judge: str | None, metrics: tuple[str, ...],
             limit: int | None) -> list[dict[str, Any]]:  # fmt: skip
    """One row per metric, and decomposition's own.

    Exact for metrics whose questions are known (before re-asks) and for decomposition; `calls_at_most` differs from
    `calls` where claims are not made yet. Sends nothing to a judge; only recorded systems are read, others count as answering.
    """
    name, _, tag = (dataset or "").partition("@")
    chosen = project.config.dataset_name(name or None)
    evaluation = Evaluation(
        project, "dry-run", chosen, tag or project.config.datasets[chosen].tag, project.config.system_name(system),
        project.config.judge_name(judge), datetime.now(UTC), Options(limit, metrics),
    )  # fmt: skip
    return asyncio.run(_estimate(evaluation))


async def _estimate(evaluation: Evaluation) -> list[dict[str, Any]]:
    whole = await _samples(evaluation)
    declared = evaluation.metrics()
    ledger = Ledger(evaluation.project.ledger_url) if (evaluation.project.local / "ledger.sqlite").exists() else None
    rows = []
    wanted = decomposition.sources(list(declared.values()))
    if wanted:
        questions = [(sample, question) for sample in whole for question in decomposition.questions(sample, wanted)]
        rows.append(await _row(evaluation, CLAIMS_METRIC, evaluation.judge, questions, len(questions), ledger))
    for name, metric in declared.items():
        open_ = [sample for sample in whole if screen(metric, sample) is None]
        low, high = (_with_claims(open_, metric, count) for count in CLAIMS_RANGE)
        at_most = sum(len(metric.questions(sample)) for sample in high)
        known = [(sample, question) for sample in low for question in metric.questions(sample)]
        rows.append(await _row(evaluation, name, evaluation.judge_of(name), known, at_most, ledger))
    return rows


async def _samples(evaluation: Evaluation) -> list[Sample]:
    """The items with recorded responses, or with a stand-in where the system would have to be asked."""
    config, items = evaluation.system_config, evaluation.items()
    if config.source == "recorded":
        source = build_source(evaluation.system, config, evaluation.project.root, evaluation.project.environment)
        with Journal(evaluation.project.local / "journal" / "dry-run.jsonl") as journal:
            return samples(items, await fetch(items, source, journal, "dry-run"))
    return [
        Sample(item_id=row["item_id"], user_input=row["user_input"], reference=row["reference"], response=row["reference"] or "?",
               retrieved_contexts=tuple(row["reference_contexts"] or ("?",)))
        for row in items.iter_rows(named=True)
    ]  # fmt: skip


def _with_claims(whole: Sequence[Sample], metric: Metric, count: int) -> list[Sample]:
    if not metric.decomposes:
        return list(whole)
    claims = {
        source: tuple((_text(sample, source) or "?")[:200] for _ in range(count))
        for source in metric.decomposes
        for sample in whole[:1]
    }
    return [replace(sample, claims=claims) for sample in whole]


def _text(sample: Sample, source: PartSource) -> str | None:
    return sample.reference if source == PartSource.REFERENCE else sample.response


async def _row(evaluation: Evaluation, name: str, judge: str, questions: Sequence[tuple[Sample, Question]], at_most: int,
               ledger: Ledger | None) -> dict[str, Any]:  # fmt: skip
    identity = build_judge(judge, evaluation.project.config.judges[judge], evaluation.project).identity
    if ledger is not None:
        ledger.preload(identity.model)
    counter = _Counter(identity, ledger)
    asker = Asker(counter, attempts=1)
    for sample, question in questions:
        await asker.ask(question, sample.language)
    calls = counter.questions - counter.hits
    output = calls * (OUTPUT_TOKENS if name != CLAIMS_METRIC else 10 * OUTPUT_TOKENS)
    return {
        "metric": name, "judge": judge, "questions": counter.questions, "from_ledger": counter.hits, "calls": calls,
        "calls_at_most": max(calls, at_most - counter.hits), "input_tokens": counter.tokens, "output_tokens": output,
        "cost_usd": cost(identity.model, counter.tokens, 0, output),
    }  # fmt: skip
