"""Trust, continued: blind label sheets out, back in, and how far it has come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t
from eval_pipeline.cli.run import Evaluation

label_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
Dataset = Annotated[
    str | None, typer.Option(help=t("Which dataset, when there are several", "데이터셋이 여럿일 때 고르기"))
]


@label_app.command(help=t("Blind sheets, sampled by judge score", "심판 점수로 표집한 가림 라벨 시트"))
def export(
    metric: Annotated[str, typer.Option(help=t("Which metric", "지표"))],
    out: Annotated[Path, typer.Option("--out", help=t("Sheet: .csv, .xlsx or .html", "시트: .csv, .xlsx, .html"))],
    n: Annotated[int, typer.Option("--n", min=1, help=t("How many texts", "텍스트 수"))] = 100,
    annotators: Annotated[
        str,
        typer.Option(help=t("Names, comma-separated; one sheet each", "주석자 이름, 쉼표로 구분. 사람마다 시트 하나")),
    ] = "annotator",
    overlap: Annotated[
        int, typer.Option(min=0, help=t("Texts that everyone labels", "모두가 함께 라벨링할 텍스트 수"))
    ] = 0,
    evaluation: Evaluation = "latest",
    seed: Annotated[int, typer.Option(help=t("Seed of the draw", "추출 시드"))] = 1,
    adjudicate: Annotated[
        bool,
        typer.Option(
            "--adjudicate",
            help=t(
                "Instead: what people labelled differently, to be settled",
                "대신: 서로 다르게 라벨링되어 판정이 필요한 텍스트",
            ),
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help=t("Texts that have labels: a second look", "이미 라벨이 있는 텍스트를 다시 확인")),
    ] = False,
    dataset: Dataset = None,
    force: Annotated[bool, typer.Option("--force", help=t("Replace sheets", "기존 시트 덮어쓰기"))] = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import labelling

    if adjudicate:
        labelling.export_adjudication(project(), dataset, metric, out, force, json_)
        return
    names = list(dict.fromkeys(name.strip() for name in annotators.split(",")))
    labelling.export(project(), evaluation, metric, n, names, overlap, out, seed, force, again, json_)


@label_app.command("import", help=t("Bring a filled sheet in", "작성한 시트 가져오기"))
def import_(
    file: Annotated[
        Path, typer.Argument(help=t("Filled sheet: CSV, XLSX, or the page's JSON", "작성한 시트: CSV, XLSX, 페이지의 JSON"))
    ],
    annotator: Annotated[str, typer.Option(help=t("Who labelled; `adjudicated` settles", "라벨링한 사람. `adjudicated`는 최종 판정"))],
    dataset: Dataset = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:  # fmt: skip
    from eval_pipeline.cli import labelling

    raise typer.Exit(labelling.import_(project(), dataset, file, annotator, json_))


@label_app.command(help=t("Labels, agreement and what waits, by metric", "지표별 라벨 수, 일치도, 남은 일"))
def status(dataset: Dataset = None, json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import labelling

    labelling.status(project(), dataset, json_)
