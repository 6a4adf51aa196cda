"""Operate: backfills, batches, the ledger and the UI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t

PANEL = t("Operate", "운영")
ledger_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
batch_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


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


@batch_app.command(help=t("Evaluate, asking the judge by batch", "심판에게 배치로 물어 평가"))
def submit(
    dataset: Annotated[str | None, typer.Option(help=t("NAME or NAME@TAG", "이름 또는 이름@태그"))] = None,
    system: Annotated[str | None, typer.Option(help=t("System to evaluate", "평가할 시스템"))] = None,
    judge: Annotated[str | None, typer.Option(help=t("Judge to use", "사용할 심판"))] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help=t("Stop at this number of calls", "이 호출 수에서 멈춤"))
    ] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import running

    raise typer.Exit(
        running.run(
            project(), dataset=dataset, system=system, judge=judge, max_calls=max_calls, batch=True, as_json=json_
        )
    )


@batch_app.command(help=t("Bring in the replies of ended batches", "끝난 배치의 응답 거두기"))
def poll(json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import batching

    batching.poll(project(), json_)


@batch_app.command("status", help=t("Batches on record", "기록된 배치"))
def batch_status(json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import batching

    batching.status(project(), json_)


def backfill(
    system: Annotated[
        str | None, typer.Option(help=t("Ask this system as it is now", "이 시스템에 지금 상태로 다시 물음"))
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help=t("Judge the stored responses of the window by this judge", "저장된 응답을 이 심판으로 다시 판정")
        ),
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(help=t("Only these, NAME or NAME@TAG (repeatable)", "이것만, 이름 또는 이름@태그(여러 번 가능)")),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help=t("Partitions and predicted calls only", "파티션과 예상 호출만 표시")),
    ] = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import backfilling

    backfilling.backfill(project(), system, judge, tuple(datasets or ()), dry_run=dry_run, as_json=json_)


def dev(
    port: Annotated[int, typer.Option(min=1, max=65535, help=t("Port of the UI", "UI 포트"))] = 3000,
    host: Annotated[str, typer.Option(help=t("Address the UI listens on", "UI가 열릴 주소"))] = "127.0.0.1",
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import operating

    operating.dev(project(), host, port)


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
    app.add_typer(
        batch_app, name="batch", help=t("Judging at the batch discount", "배치 할인으로 판정"), rich_help_panel=PANEL
    )
    app.add_typer(
        ledger_app, name="ledger", help=t("Replies that were paid for", "비용을 치른 응답 원장"), rich_help_panel=PANEL
    )
    app.command(
        "backfill",
        help=t("Evaluations that a system or judge still lacks", "시스템이나 심판에 빠진 평가 채우기"),
        rich_help_panel=PANEL,
    )(backfill)
    app.command("dev", help=t("The Dagster UI on this project", "이 프로젝트의 Dagster UI"), rich_help_panel=PANEL)(dev)
