"""Samples to verdicts: every question of every metric, all templates at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import polars as pl

from eval_pipeline import prompts
from eval_pipeline.asking import Asked, Asker
from eval_pipeline.chat import ModelIdentity
from eval_pipeline.metrics.declaration import Metric, Question, Sample
from eval_pipeline.metrics.inputs import screen
from eval_pipeline.tables import VERDICTS
from eval_pipeline.verdict_rows import Origin, row
from eval_pipeline.vocabulary import Language

PART_SIZE = 1_000
"""Items per written part: bounds memory whatever the size of the set."""
STARTED_AT_ONCE = 32


def judge_key(identity: ModelIdentity, metric: Metric, embedding: str = "") -> str | None:
    """Identity of a judge on one metric, under which calibrations, baselines and gates are looked up.

    Covers model, revision, parameters, template texts in both languages and those of asking again, metric version, what the
    configuration sets for the metric, and the name of the embedding model where the metric compares texts by one; the
    endpoint does not count. Null for a metric that asks no judge.
    """
    if not metric.template_ids:
        return None
    wanted = sorted({*metric.template_ids, *(["claims"] if metric.decomposes else [])})
    parts = [identity.model, identity.revision, dict(identity.parameters), metric.name, metric.version,
             [prompts.load(template_id, language).sha256 for template_id in wanted for language in Language],
             prompts.reasks_sha256(), dict(metric.settings), dict(metric.options)]  # fmt: skip
    if metric.needs_embedding:
        parts.append(embedding)
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str).encode()).hexdigest()


async def judge(
    samples: Sequence[Sample],
    metrics: Mapping[str, Metric],
    askers: Mapping[str, Asker],
    origins: Mapping[str, Origin],
    on_answer: Callable[[Asked], None] = lambda _: None,
) -> AsyncIterator[pl.DataFrame]:
    """Asks every metric's questions about every sample, in parts.

    Args:
        samples: one per item.
        metrics: declarations by instance name.
        askers: the judge of each metric.
        origins: what each metric's verdicts share.
        on_answer: called once per answered question, for progress.

    Yields:
        `verdicts` rows of at most `PART_SIZE` items. An item that the input policy settles asks nothing and has none.
    """
    for start in range(0, len(samples), PART_SIZE):
        part = samples[start : start + PART_SIZE]
        work: list[tuple[str, str, asyncio.Task[list[Asked]]]] = []
        for sample in part:
            for name, metric in metrics.items():
                if screen(metric, sample) is None:
                    task = asyncio.ensure_future(_ask_about(sample, metric, askers[name], on_answer))
                    work.append((sample.item_id, name, task))
            if len(work) % STARTED_AT_ONCE < len(metrics):
                # Lets the first requests go out while the later prompts are still being rendered.
                await asyncio.sleep(0)
        answers = await asyncio.gather(*(task for _, _, task in work))
        yield VERDICTS.frame(
            row(asked, item_id, origins[name])
            for (item_id, name, _), answer in zip(work, answers, strict=True)
            for asked in answer
        )


async def _ask_about(sample: Sample, metric: Metric, asker: Asker, on_answer: Callable[[Asked], None]) -> list[Asked]:
    first = await _ask_all(sample, metric.questions(sample), asker, on_answer)
    if metric.follow_up is None:
        return first
    follow_up = metric.follow_up(sample, [asked.verdict for asked in first])
    return first + await _ask_all(sample, follow_up, asker, on_answer)


async def _ask_all(
    sample: Sample, questions: Sequence[Question], asker: Asker, on_answer: Callable[[Asked], None]
) -> list[Asked]:
    async def one(question: Question) -> Asked:
        asked = await asker.ask(question, sample.language)
        on_answer(asked)
        return asked

    return await asyncio.gather(*map(one, questions))


def count(samples: Sequence[Sample], metrics: Mapping[str, Metric]) -> int:
    """Questions of the first round; follow-up questions depend on answers and are not known yet."""
    return sum(
        len(metric.questions(sample))
        for metric in metrics.values()
        for sample in samples
        if screen(metric, sample) is None
    )
