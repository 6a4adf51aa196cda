"""Finds evaluations by selector and collects what people look at. Reads only."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from eval_pipeline.errors import ChoiceNeeded, EvaluationNotFound
from eval_pipeline.evaluation.evidence import complete
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.publication import report_path
from eval_pipeline.stages import gating
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.vocabulary import Decision, Policy

if TYPE_CHECKING:
    from eval_pipeline.report.view import EvaluationView

__all__ = ["decision", "evaluations", "latest_or_none", "newest", "report_path", "row", "select", "view"]


def evaluations(project: Project) -> pl.DataFrame:
    """All finished evaluations, oldest first."""
    return complete(Warehouse(project.warehouse))


def select(project: Project, selector: str) -> str:
    """The evaluation a selector names: an id or its beginning, latest, previous, baseline, a date, or `30d`.

    `latest` and `previous` look at complete evaluations only; `30d` is the newest at least 30 days old.

    Raises:
        EvaluationNotFound: nothing matches, or a beginning matches several.
    """
    rows = evaluations(project)
    whole = rows.filter(~pl.col("is_partial"))
    found: list[str] = []
    if selector in {"latest", "previous"}:
        place = -1 if selector == "latest" else -2
        found = whole["evaluation_id"].to_list()[place:][:1] if whole.height >= -place else []
    elif selector == "baseline":
        found = _pinned(project)
    elif days := re.fullmatch(r"(\d+)d", selector):
        before = datetime.now(UTC) - timedelta(days=int(days.group(1)))
        found = whole.filter(pl.col("started_at") <= before)["evaluation_id"].to_list()[-1:]
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", selector):
        day = date.fromisoformat(selector)
        found = whole.filter(pl.col("started_at").dt.date() == day)["evaluation_id"].to_list()[-1:]
    else:
        found = rows.filter(pl.col("evaluation_id").str.starts_with(selector))["evaluation_id"].to_list()
    if len(found) != 1:
        raise EvaluationNotFound(selector=selector)
    return found[0]


def row(project: Project, evaluation_id: str) -> dict[str, Any]:
    """The `evaluations` row of a finished evaluation."""
    return evaluations(project).row(by_predicate=pl.col("evaluation_id") == evaluation_id, named=True)


def _pinned(project: Project) -> list[str]:
    from eval_pipeline.store.evidence import read_baseline

    dataset = project.config.dataset_name()
    frame = read_baseline(Path(project.dataset_folder(dataset)), project.config.gate.baseline)
    return [] if frame is None or frame.is_empty() else [str(frame["evaluation_id"][0])]


def view(project: Project, evaluation_id: str, baseline: str | None = None) -> EvaluationView:
    """Everything about one evaluation, as the report and the summary take it; compared with the one before or `baseline`."""
    from eval_pipeline.report.view import view as build

    return build(Warehouse(project.warehouse).read, evaluation_id, baseline)


def decision(project: Project, seen: EvaluationView) -> gating.Gate:
    """The stored decision of an evaluation, with the exit code its policy gives."""
    rows = seen.gate.to_dicts()
    whole = next(row for row in rows if row["rule"] == "decision")
    verdict, policy = Decision(whole["verdict"]), Policy(whole["policy"])
    return gating.Gate(verdict, gating.exit_code(verdict, project.config.gate.policy(policy)), ())


def newest(project: Project, system: str | None = None) -> str:
    """The newest complete evaluation; of one system where several were evaluated.

    Raises:
        UnknownName: several systems were evaluated and none is named.
        EvaluationNotFound: there is none.
    """
    rows = evaluations(project).filter(~pl.col("is_partial"))
    chosen = system or project.config.default_system
    systems = rows["system"].unique().to_list()
    if chosen is None and len(systems) > 1:
        raise ChoiceNeeded(kind="system", known=", ".join(sorted(systems)))
    if chosen is not None:
        rows = rows.filter(pl.col("system") == chosen)
    if rows.is_empty():
        raise EvaluationNotFound(selector=f"latest {chosen or ''}".strip())
    return rows["evaluation_id"][-1]


def latest_or_none(project: Project) -> EvaluationView | None:
    """The newest complete evaluation's view, or null when nothing was evaluated."""
    rows = evaluations(project).filter(~pl.col("is_partial"))
    return None if rows.is_empty() else view(project, rows["evaluation_id"][-1])
