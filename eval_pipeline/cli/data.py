"""Data: golden datasets, from import to export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t

PANEL = t("Data", "데이터")
dataset_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
Name = Annotated[str, typer.Argument(help=t("Dataset", "데이터셋"))]
NameAtTag = Annotated[str, typer.Argument(help=t("NAME or NAME@TAG", "이름 또는 이름@태그"))]


@dataset_app.command(help=t("Import a file as a new version", "파일을 새 버전으로 가져오기"))
def add(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            help=t(
                "JSONL, JSON, CSV, TSV, XLSX, Parquet or Arrow folder",
                "JSONL, JSON, CSV, TSV, XLSX, Parquet, Arrow 폴더",
            )
        ),
    ],
    tag: Annotated[str, typer.Option(help=t("Name of the version", "버전 이름"))],
    message: Annotated[str, typer.Option(help=t("Why it changed", "변경 이유"))] = "",
    map_: Annotated[
        list[str] | None, typer.Option("--map", help=t("ours=theirs, repeatable", "우리필드=원래필드, 여러 번 가능"))
    ] = None,
    contexts_as: Annotated[str | None, typer.Option("--contexts-as", help="json | python | lines | text")] = None,
    metric: Annotated[
        str | None, typer.Option(help=t("Metric that human scores are about", "사람 점수가 가리키는 지표"))
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help=t("Show what would be written, write nothing", "쓸 내용만 보여 주고 쓰지 않음")),
    ] = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    datasets.add(project(), name, file, tag, message, map_ or [], contexts_as, metric, dry_run, json_)


@dataset_app.command("list", help=t("Datasets of the project", "프로젝트의 데이터셋"))
def list_(json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import datasets

    datasets.list_(project(), json_)


@dataset_app.command(help=t("Versions, oldest first", "버전 기록"))
def log(name: Name, json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import datasets

    datasets.log(project(), name, json_)


@dataset_app.command(help=t("Items of a version", "버전의 항목"))
def show(
    name: NameAtTag,
    limit: Annotated[int, typer.Option(min=1, help=t("How many items", "항목 수"))] = 20,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    datasets.show(project(), name, limit, json_)


@dataset_app.command(help=t("What changed between two versions", "두 버전의 차이"))
def diff(
    name: Name,
    old: Annotated[str, typer.Argument(help=t("Older tag", "이전 태그"))],
    new: Annotated[str, typer.Argument(help=t("Newer tag", "새 태그"))] = "latest",
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    datasets.diff(project(), name, old, new, json_)


@dataset_app.command(help=t("Rot: moved content, broken rows", "노후화 검사: 옮겨진 내용, 깨진 행"))
def check(
    name: NameAtTag,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", help=t("Folder for Great Expectations data docs", "Great Expectations data docs 폴더")),
    ] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    raise typer.Exit(datasets.check(project(), name, docs, json_))


@dataset_app.command(help=t("Write a version to a file", "버전을 파일로 내보내기"))
def export(
    name: NameAtTag,
    out: Annotated[Path, typer.Option("--out", help=t("Target file", "저장할 파일"))],
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    datasets.export(project(), name, out)


Seed = Annotated[int, typer.Option(help=t("The same seed gives the same items", "같은 시드는 같은 항목을 줍니다"))]
Force = Annotated[bool, typer.Option("--force", help=t("Replace files", "기존 파일 덮어쓰기"))]


@dataset_app.command(help=t("Parts as files: strata kept, clusters whole", "층 비율을 지키고 군집을 나누지 않는 분할"))
def split(
    name: NameAtTag,
    into: Annotated[str, typer.Option("--into", help=t("As train=0.8,test=0.2", "예: train=0.8,test=0.2"))],
    out: Annotated[Path, typer.Option("--out", help=t("Folder for one JSONL a part", "분할마다 JSONL을 쓸 폴더"))],
    seed: Seed = 1,
    force: Force = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    raise typer.Exit(datasets.split(project(), name, into, out, seed, force, json_))


@dataset_app.command(
    help=t("Some items: strata in proportion, clusters whole", "층 비율을 지키고 군집을 나누지 않는 표본")
)
def sample(
    name: NameAtTag,
    n: Annotated[int, typer.Option("--n", min=1, help=t("How many items", "항목 수"))],
    out: Annotated[Path, typer.Option("--out", help=t("Target file", "저장할 파일"))],
    seed: Seed = 1,
    force: Force = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import datasets

    datasets.sample(project(), name, n, out, seed, force, json_)


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
    app.add_typer(dataset_app, name="dataset", help=t("Golden datasets", "골든 데이터셋"), rich_help_panel=PANEL)
