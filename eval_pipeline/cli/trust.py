"""Trust: the judge against people, the gate, the pinned baseline, decisions on judges, the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.console import LANGUAGE, AsJson, Lang, project, t
from eval_pipeline.cli.label import label_app
from eval_pipeline.cli.run import Evaluation
from eval_pipeline.vocabulary import Policy

PANEL = t("Trust", "신뢰")
gate_app = typer.Typer(invoke_without_command=True, rich_markup_mode="rich")


def calibrate(
    judge: Annotated[str | None, typer.Option(help=t("Which judge", "심판"))] = None,
    metric: Annotated[str | None, typer.Option(help=t("Which metric", "지표"))] = None,
    pairs: Annotated[
        Path | None, typer.Option(help=t("Stand-alone: a CSV or JSONL file of pairs", "단독: 쌍이 담긴 CSV/JSONL 파일"))
    ] = None,
    human_column: Annotated[
        str, typer.Option("--human-column", help=t("Column of human scores", "사람 점수 열"))
    ] = "human",
    judge_column: Annotated[
        str, typer.Option("--judge-column", help=t("Column of judge scores", "심판 점수 열"))
    ] = "judge",
    annotator_column: Annotated[
        list[str] | None,
        typer.Option(
            "--annotator-column",
            help=t("Two columns of single annotators, for the human ceiling", "사람 간 상한을 위한 주석자 열 두 개"),
        ),
    ] = None,
    bar: Annotated[
        float | None, typer.Option(min=0, max=0.99, help=t("The bar for rho's lower limit", "rho 하한의 기준"))
    ] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import trusting

    if pairs is not None:
        raise typer.Exit(
            trusting.calibrate_pairs(
                pairs, human_column, judge_column, annotator_column or [], 0.7 if bar is None else bar, json_
            )
        )
    raise typer.Exit(trusting.calibrations(project(), judge, metric, json_))


@gate_app.callback()
def gate(
    context: typer.Context,
    evaluation: Evaluation = "latest",
    policy: Annotated[Policy, typer.Option(help="pr | nightly | release")] = Policy.PR,
    junit: Annotated[Path | None, typer.Option(help=t("Write JUnit XML", "JUnit XML 저장"))] = None,
    github: Annotated[
        bool, typer.Option("--github", help=t("Step summary and annotations", "GitHub 요약과 주석"))
    ] = False,
    comment: Annotated[
        Path | None,
        typer.Option(help=t("Write a pull request comment (Markdown)", "풀 리퀘스트 댓글(Markdown) 저장")),
    ] = None,
    system: Annotated[
        str | None, typer.Option(help=t("Which system, when there are several", "시스템이 여럿일 때"))
    ] = None,
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from eval_pipeline.cli import gating

    raise typer.Exit(gating.gate(project(), evaluation, policy, junit, github, comment, json_, system))


@gate_app.command(help=t("Pin an evaluation as the baseline", "평가를 기준선으로 고정"))
def pin(
    evaluation: Annotated[str, typer.Argument(help=t("Evaluation", "평가"))] = "latest",
    label: Annotated[str, typer.Option(help=t("Name of the baseline", "기준선 이름"))] = "main",
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import gating

    gating.pin(project(), evaluation, label)


judges_app = typer.Typer(invoke_without_command=True, rich_markup_mode="rich")


@judges_app.callback()
def judges(context: typer.Context, json_: AsJson = False, lang: Lang = LANGUAGE) -> None:
    if context.invoked_subcommand is not None:
        return
    from eval_pipeline.cli import trusting

    trusting.judges(project(), json_)


@judges_app.command(help=t("The cheapest judge that meets the bar", "기준을 만족하는 가장 싼 심판"))
def pick(
    metric: Annotated[str, typer.Option(help=t("Which metric", "지표"))],
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import trusting

    raise typer.Exit(trusting.pick(project(), metric, json_))


@judges_app.command("compare", help=t("Two judges on the same stored responses", "같은 응답에서 두 심판 비교"))
def compare_judges(
    old: Annotated[str, typer.Argument(help=t("Old judge, or an evaluation by it", "이전 심판 또는 그 평가"))],
    new: Annotated[str, typer.Argument(help=t("New judge, or an evaluation by it", "새 심판 또는 그 평가"))],
    json_: AsJson = False,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import trusting

    trusting.compare_judges(project(), old, new, json_)


@judges_app.command(help=t("Accept a judge as judge of record", "심판을 공식 심판으로 승인"))
def accept(
    new: Annotated[str, typer.Argument(help=t("New judge, or an evaluation by it", "새 심판 또는 그 평가"))],
    message: Annotated[str, typer.Option(help=t("Why", "이유"))],
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import trusting

    trusting.accept(project(), new, message)


@judges_app.command(
    help=t("Evaluation steps for a G-Eval with criteria only, to paste", "기준만 있는 G-Eval의 평가 단계를 만들어 출력")
)
def steps(
    metric: Annotated[str, typer.Argument(help=t("Which metric", "지표"))],
    judge: Annotated[str | None, typer.Option(help=t("Whom to ask", "물어볼 심판"))] = None,
    lang: Lang = LANGUAGE,
) -> None:
    from eval_pipeline.cli import trusting

    trusting.g_eval_steps(project(), metric, judge)


def plan(lang: Lang = LANGUAGE) -> None:
    from eval_pipeline.cli import trusting

    trusting.plan(project())


def register(app: typer.Typer) -> None:
    """Adds the verbs of this group."""
    app.add_typer(
        label_app,
        name="label",
        help=t("Human labels: sheets out, and back in", "사람 라벨: 시트 내보내기와 가져오기"),
        rich_help_panel=PANEL,
    )
    app.command("calibrate", help=t("Judge against people", "심판을 사람과 비교"), rich_help_panel=PANEL)(calibrate)
    app.add_typer(
        judges_app,
        name="judges",
        help=t("Judges: status, cost, comparison, decision", "심판: 상태, 비용, 비교, 결정"),
        rich_help_panel=PANEL,
    )
    app.add_typer(
        gate_app, name="gate", help=t("The decision on an evaluation", "평가에 대한 결정"), rich_help_panel=PANEL
    )
    app.command("plan", help=t("The evaluation plan document", "평가 계획 문서"), rich_help_panel=PANEL)(plan)
