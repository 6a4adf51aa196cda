"""The batches of a project's judges: what is on its way, and bringing in what has ended."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import polars as pl

from eval_pipeline.evaluation.evidence import complete
from eval_pipeline.evaluation.judges import build_judge
from eval_pipeline.evaluation.project import Project
from eval_pipeline.llm.batch import CLOSED, Batches
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
        judge, reply_count, failed (how many questions by reason), unanswered_count, cost_usd (null when a price is
        unknown), open_count (batches that have not ended).

    Raises:
        ProviderStopped: the endpoint refuses or cannot be reached.
        JudgeIdentityMismatch: another model answered than declared.
    """
    return asyncio.run(_collect(project))


async def _collect(project: Project) -> list[dict[str, Any]]:
    rows = []
    async with Ledger(project.ledger_url) as ledger:
        waiting = {row["judge"] for row in ledger.batches() if row["state"] not in CLOSED}
        models = {json.loads(judge)[1] for judge in waiting}
        for name, config in project.config.judges.items():
            model = build_judge(name, config, project) if config.has_endpoint and config.model in models else None
            if isinstance(model, OpenAIChat) and (batches := Batches(model, ledger)).judge in waiting:
                waiting.discard(batches.judge)  # two names for one judge share its batches
                async with model:
                    rows.append(await _collected(name, batches))
    return rows


async def _collected(name: str, batches: Batches) -> dict[str, Any]:
    found = await batches.collect()
    reasons = list(found.failed.values())
    return {
        "judge": name, "reply_count": found.reply_count,
        "failed": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
        "unanswered_count": len(found.unanswered), "cost_usd": found.cost_usd, "open_count": len(await batches.poll()),
    }  # fmt: skip


def waiting(project: Project) -> list[dict[str, Any]]:
    """`evaluations` rows with questions that wait for a batch, of all configured metrics; others need `run --resume`."""
    warehouse = Warehouse(project.warehouse)
    rows = complete(warehouse).filter(pl.col("is_partial"))
    return [
        row
        for row in rows.iter_rows(named=True)
        if set(row["metrics"]) == set(project.config.metrics)
        and (warehouse.read(VERDICTS, row["evaluation_id"])["detail"] == WAITS).any()
    ]
