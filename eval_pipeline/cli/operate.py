"""Operate: the ledger and the UI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t

PANEL = t("Operate", "운영")
ledger_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@ledger_app.command(help=t("Replies by model", "모델별 응답 수"))
def stats(json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import operating

    operating.ledger_stats(project(), json_)


@ledger_app.command(help=t("Every reply as JSONL", "모든 응답을 JSONL로"))
def export(
    out: Annotated[Path, typer.Option("--out", help=t("Target file", "저장할 파일"))], lang: Lang = LANGUAGE
) -> None:
    from eval_pipeline.cli import operating

    operating.ledger_export(project(), out)


@ledger_app.command(help=t("Delete old replies", "오래된 응답 삭제"))
def prune(
    older_than: Annotated[str, typer.Option("--older-than", help=t("Such as 90d", "예: 90d"))],
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import operating

    operating.ledger_prune(project(), older_than)


def dev(
    port: Annotated[int, typer.Option(min=1, max=65535)] = 3000,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import operating

    operating.dev(project(), host, port)


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
    app.add_typer(
        ledger_app, name="ledger", help=t("Replies that were paid for", "비용을 치른 응답 원장"), rich_help_panel=PANEL
    )
    app.command("dev", help=t("The Dagster UI on this project", "이 프로젝트의 Dagster UI"), rich_help_panel=PANEL)(dev)
