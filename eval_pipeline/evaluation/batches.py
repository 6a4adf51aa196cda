"""The batches of a project's judges: what is on its way, and bringing in what has ended."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import polars as pl

from eval_pipeline.evaluation.evidence import complete
from eval_pipeline.evaluation.judges import build_judge
from eval_pipeline.evaluation.project import Project
from eval_pipeline.llm.batch import CLOSED, Batches, Collected
from eval_pipeline.llm.batched_chat import WAITS
from eval_pipeline.llm.ledger import Ledger
from eval_pipeline.llm.openai_chat import OpenAIChat
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import VERDICTS


def status(project: Project) -> list[dict[str, Any]]:
    """One row per batch on record, oldest first, as of the last time the provider was asked. Asks nobody."""
    rows = Ledger(project.ledger_url).batches()
    return [
        {
            "batch_id": row["batch_id"], "model": json.loads(row["judge"])[1], "state": row["state"],
            "is_open": row["state"] not in CLOSED, "question_count": len(row["keys"]),
            "created_at": datetime.fromtimestamp(row["created_at"], UTC),
        }
        for row in rows
    ]  # fmt: skip


def collect(project: Project) -> list[dict[str, Any]]:
    """Brings ended batches into the ledger; one row per judge that had any open.

    Returns:
        judge, is_configured, reply_count, failed (how many questions by reason), unanswered_count, cost_usd (null when a
        price is unknown), open_count (batches that have not ended). A judge that is not in the configuration any more
        stands under its model's name; nobody can be asked about its batches.

    Raises:
        ProviderStopped: the endpoint refuses or cannot be reached.
        JudgeIdentityMismatch: another model answered than declared.
    """
    return asyncio.run(_collect(project))


async def _collect(project: Project) -> list[dict[str, Any]]:
    rows = []
    async with Ledger(project.ledger_url) as ledger:
        waiting = Counter(row["judge"] for row in ledger.batches() if row["state"] not in CLOSED)
        models = {json.loads(judge)[1] for judge in waiting}
        for name, config in project.config.judges.items():
            model = build_judge(name, config, project) if config.has_endpoint and config.model in models else None
            if isinstance(model, OpenAIChat) and (batches := Batches(model, ledger)).judge in waiting:
                del waiting[batches.judge]  # two names for one judge share its batches
                async with model:
                    rows.append(_row(name, await batches.collect(), len(await batches.poll())))
    return rows + [_row(json.loads(judge)[1], Collected(), count, False) for judge, count in sorted(waiting.items())]


def _row(name: str, found: Collected, open_count: int, is_configured: bool = True) -> dict[str, Any]:
    return {
        "judge": name, "is_configured": is_configured, "reply_count": found.reply_count,
        "failed": dict(sorted(Counter(found.failed.values()).items())),
        "unanswered_count": len(found.unanswered), "cost_usd": found.cost_usd, "open_count": open_count,
    }  # fmt: skip


def waiting(project: Project) -> list[dict[str, Any]]:
    """`evaluations` rows with questions that wait for a batch, of all configured metrics; others need `run --resume`.

    Each with `waiting_keys`, the ledger keys of those questions, and `answered_keys`, those that have their reply now.
    """
    warehouse = Warehouse(project.warehouse)
    found = []
    for row in complete(warehouse).filter(pl.col("is_partial")).iter_rows(named=True):
        verdicts = warehouse.read(VERDICTS, row["evaluation_id"]).filter(pl.col("detail") == WAITS)
        if verdicts.height and set(row["metrics"]) == set(project.config.metrics):
            keys = verdicts["ledger_key"].drop_nulls().unique().sort().to_list()
            found.append(row | {"waiting_keys": keys, "answered_keys": asyncio.run(_answered(project, keys))})
    return found


async def _answered(project: Project, keys: list[str]) -> list[str]:
    async with Ledger(project.ledger_url) as ledger:
        replies = await asyncio.gather(*map(ledger.find, keys))
    return [key for key, reply in zip(keys, replies, strict=True) if reply is not None]
