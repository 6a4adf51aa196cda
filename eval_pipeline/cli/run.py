"""Run: one evaluation, what ran, one item, two evaluations, the report, and SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t
from eval_pipeline.vocabulary import Policy

PANEL = t("Run", "실행")
Evaluation = Annotated[
    str,
    typer.Option("--evaluation", "-e", help=t("Id or latest, previous, baseline, a date, 30d", "id 또는 latest, previous, baseline, 날짜, 30d")),
]  # fmt: skip


def run(
    dataset: Annotated[str | None, typer.Option(help=t("NAME or NAME@TAG", "이름 또는 이름@태그"))] = None,
    system: Annotated[str | None, typer.Option(help=t("System to evaluate", "평가할 시스템"))] = None,
    judge: Annotated[str | None, typer.Option(help=t("Judge to use", "사용할 심판"))] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help=t("Only these metrics (repeatable)", "이 지표만(여러 번 가능)"))
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help=t("Only N items", "항목 N개만"))] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help=t("Questions, calls, tokens and cost; sends nothing", "질문·호출·토큰·비용만 보여 주고 보내지 않음"),
        ),
    ] = False,
    max_cost_usd: Annotated[float | None, typer.Option(min=0, help=t("Stop at this cost", "이 비용에서 멈춤"))] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help=t("Stop at this number of calls", "이 호출 수에서 멈춤"))
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help=t("Go on with the newest unfinished evaluation", "끝나지 않은 최근 평가를 이어서")
        ),
    ] = False,
    retry_invalid: Annotated[
        bool,
        typer.Option("--retry-invalid", help=t("Ask again where attempts were spent", "시도를 다 쓴 질문도 다시 물음")),
    ] = False,
    gate: Annotated[
        Policy | None, typer.Option("--gate", help=t("Exit by the gate's decision", "게이트 결정으로 종료 코드를 정함"))
    ] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import running

    if dry_run:
        running.dry_run(project(), dataset, system, judge, tuple(metric or ()), limit, json_, gate)
        return
    code = running.run(
        project(), dataset=dataset, system=system, judge=judge, metrics=tuple(metric or ()), limit=limit,
        max_cost_usd=max_cost_usd, max_calls=max_calls, resume=resume, retry_invalid=retry_invalid, gate=gate, as_json=json_,
    )  # fmt: skip
    raise typer.Exit(code)


def evaluations(json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import reading

    reading.evaluations(project(), json_)


def status(json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import running

    running.status(project(), json_)


def show(
    item: Annotated[str, typer.Argument(help=t("Item id", "항목 id"))],
    evaluation: Evaluation = "latest",
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import reading

    reading.show(project(), item, evaluation, json_)


def compare(
    old: Annotated[str, typer.Argument(help=t("Older evaluation", "이전 평가"))],
    new: Annotated[str, typer.Argument(help=t("Newer evaluation", "새 평가"))],
    bridge: Annotated[
        bool,
        typer.Option(
            "--bridge",
            help=t("Have the newer judge judge the older responses again", "새 평가의 심판이 이전 응답을 다시 판정"),
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help=t("Only say what --bridge would take", "--bridge에 드는 호출과 비용만 표시")),
    ] = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import comparing

    if bridge or dry_run:
        comparing.over_judges(project(), old, new, dry_run, json_)
    else:
        comparing.compare(project(), old, new, json_)


def report(
    evaluation: Evaluation = "latest",
    out_file: Annotated[Path | None, typer.Option("--out", help=t("Where to write it", "저장할 위치"))] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format", help=t("html | md | png | svg (charts, to a folder)", "html | md | png | svg(폴더에 차트 파일)")
        ),
    ] = "html",
    baseline: Annotated[
        str | None,
        typer.Option(help=t("Compare with this evaluation, not the one before", "직전 평가 대신 이 평가와 비교")),
    ] = None,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import reading

    reading.report(project(), evaluation, out_file, format_, baseline)


def export(
    target: Annotated[
        str,
        typer.Option("--out", help=t("File; for mlflow a folder or tracking URI", "파일. mlflow는 폴더 또는 추적 URI")),
    ],
    shape: Annotated[
        str,
        typer.Option(
            "--as",
            help=t(
                "csv | parquet | jsonl | ragas | deepeval | mlflow",
                "csv | parquet | jsonl | ragas | deepeval | mlflow 형식",
            ),
        ),
    ] = "csv",
    evaluation: Evaluation = "latest",
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import reading

    reading.export(project(), evaluation, shape, target)


def query(
    sql: Annotated[str, typer.Argument(help=t("SQL to read results.duckdb with", "results.duckdb를 읽을 SQL"))],
    format_: Annotated[str, typer.Option("--format", help="table | csv | json | parquet")] = "table",
    out_file: Annotated[Path | None, typer.Option("--out", help=t("File to write to", "저장할 파일"))] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli.querying import run_query

    run_query(project().database, sql, "json" if json_ else format_, out_file)


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
    verbs = {
        run: t("One evaluation, in this process", "평가 한 번을 이 프로세스에서 실행"),
        evaluations: t("What was evaluated", "실행한 평가 목록"),
        status: t("What runs, what is stuck, and the command that resumes it", "실행 중인 것, 멈춘 것, 이어 가는 명령"),
        show: t("One item in full", "항목 하나를 자세히"),
        compare: t("Two evaluations, paired by item", "두 평가를 항목별로 비교"),
        report: t("The report as a file", "보고서 파일 만들기"),
        export: t("Items and scores for other tools", "항목과 점수를 다른 도구용 파일로 내보내기"),
        query: t("SQL on the published results, read-only", "게시된 결과를 SQL로 읽기"),
    }
    for verb, text in verbs.items():
        app.command(verb.__name__, help=text, rich_help_panel=PANEL)(verb)
