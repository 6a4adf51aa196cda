"""Start: the demo, a new project, and the check of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t

PANEL = t("Start", "시작")


def demo(
    dir_: Annotated[
        Path | None, typer.Option("--dir", help=t("Folder of the demo project", "데모 프로젝트 폴더"))
    ] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import starting

    starting.demo(dir_, json_)


def init(
    folder: Annotated[Path, typer.Argument(help=t("New project folder", "새 프로젝트 폴더"))],
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import starting

    starting.init(folder)


def check(
    online: Annotated[
        bool, typer.Option("--online", help=t("One request to system and judge", "시스템과 심판에 요청 하나씩"))
    ] = False,
    system: Annotated[str | None, typer.Option(help=t("Which system", "확인할 시스템"))] = None,
    show: Annotated[int, typer.Option(min=0, help=t("Mapped answers to show", "보여 줄 응답 수"))] = 1,
    judge: Annotated[str | None, typer.Option(help=t("Which judge", "확인할 심판"))] = None,
    probe: Annotated[
        bool,
        typer.Option("--probe", help=t("Hostile-text flip rate of the judge", "적대적 문장에 심판이 뒤집히는 비율")),
    ] = False,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import checking

    raise typer.Exit(
        checking.check(project(), online=online, system=system, show=show, judge=judge, probe=probe, as_json=json_)
    )


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
    verbs = {
        demo: t(
            "The whole chain on the bundled dataset; no key, no network",
            "내장 데이터셋으로 전체 과정 실행(키·네트워크 불필요)",
        ),
        init: t("A new evaluation project", "새 평가 프로젝트 만들기"),
        check: t(
            "Validate configuration, dataset, prompts; --online asks once",
            "설정·데이터셋·프롬프트 검사, --online은 한 번 물어봄",
        ),
    }
    for verb, text in verbs.items():
        app.command(verb.__name__, help=text, rich_help_panel=PANEL)(verb)
