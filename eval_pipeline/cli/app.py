"""The verbs by group, in the order help shows them."""

from __future__ import annotations

from typing import Any

import typer
from typer import rich_utils

from eval_pipeline.cli import data, operate, run, start, trust
from eval_pipeline.cli.console import LANGUAGE, Lang, t
from eval_pipeline.vocabulary import Language

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
HELP = t(
    "Evaluate RAG and LLM systems with LLM judges, and see how far the numbers can be trusted.",
    "RAG·LLM 시스템을 LLM 심판으로 평가하고, 그 숫자를 어디까지 믿을 수 있는지 보여 줍니다.",
)


@app.callback(help=HELP)
def root(lang: Lang = LANGUAGE) -> None:
    """Takes `--lang` before the verb too."""


for group in (start, run, trust, data, operate):
    group.register(app)


def command() -> Any:
    """The verbs as one command whose help is of one language: typer's own words are English."""
    built = typer.main.get_command(app)
    if LANGUAGE == Language.KO:
        rich_utils.OPTIONS_PANEL_TITLE, rich_utils.ARGUMENTS_PANEL_TITLE = "옵션", "인자"
        rich_utils.COMMANDS_PANEL_TITLE = "명령"
        rich_utils.DEFAULT_STRING, rich_utils.REQUIRED_LONG_STRING = "[기본값: {}]", "[필수]"
        _translate(built)
    return built


def _translate(built: Any) -> None:
    """Texts of the options that typer adds by itself."""
    texts = {"help": "이 도움말을 보이고 끝냄", "install_completion": "지금 셸에 자동 완성 설치",
             "show_completion": "지금 셸의 자동 완성 스크립트 보기"}  # fmt: skip
    for option in built.get_params(typer.Context(built, help_option_names=["-h", "--help"])):
        if option.name in texts:
            option.help = texts[option.name]
    for child in getattr(built, "commands", {}).values():
        _translate(child)
