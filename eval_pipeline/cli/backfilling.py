"""What `backfill` does: the evaluations that a system or a judge is still to have, queued or run here."""

from __future__ import annotations

from typing import Any

from eval_pipeline.cli.console import emit, out, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.evaluation.dry_run import estimate
from eval_pipeline.evaluation.due import Due
from eval_pipeline.evaluation.due import backfill as due_evaluations
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import Options
from eval_pipeline.vocabulary import Policy

COUNTED = ("questions", "calls", "calls_at_most", "cost_usd")


def backfill(
    project: Project, system: str | None, judge: str | None, datasets: tuple[str, ...], *, dry_run: bool, as_json: bool
) -> None:
    """Queues the evaluations where a daemon runs, and runs them one after the other in this process where none does."""
    due = due_evaluations(project, system, judge, datasets)
    policy = project.config.schedule.policy if project.config.schedule else Policy.NIGHTLY
    if dry_run or not due:
        _show([_predicted(project, one, policy) for one in due], as_json)
        return
    from eval_pipeline.launch import backfill as start

    _show([{**_named(one), "queued_run_id": run, "evaluation_id": made}
           for one, run, made in start(project, due, Options(policy=policy))], as_json)  # fmt: skip


def _named(one: Due) -> dict[str, Any]:
    return {
        "dataset_version": one.of.dataset_key, "configuration": one.of.configuration_key, "responses_of": one.responses_of,
    }  # fmt: skip


def _predicted(project: Project, one: Due, policy: Policy) -> dict[str, Any]:
    """The partition with what it would ask; each is counted alone, so what two share is counted twice."""
    rows = estimate(
        project,
        f"{one.of.dataset}@{one.of.tag}",
        one.of.system,
        one.of.judge,
        policy=policy,
        responses_of=one.responses_of,
    )
    total = {name: [row[name] for row in rows] for name in COUNTED}
    return _named(one) | {name: None if None in found else sum(found) for name, found in total.items()}


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        emit(rows)
    elif rows:
        out().print(table(list(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        say(t("Nothing is missing.", "빠진 것이 없습니다."))
