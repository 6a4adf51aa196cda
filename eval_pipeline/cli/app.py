"""The verbs by group, in the order help shows them."""

from __future__ import annotations

import typer

from eval_pipeline.cli import data, operate, run, start, trust
from eval_pipeline.cli.console import LANGUAGE, Lang, t

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
