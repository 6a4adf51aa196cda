"""The HTML report: one self-contained file."""

from __future__ import annotations

from eval_pipeline.report.view import EvaluationView
from eval_pipeline.vocabulary import Language


def render(view: EvaluationView, language: Language) -> str:
    """The page of one evaluation."""
    import html
    from io import StringIO

    from rich.console import Console

    from eval_pipeline.report.summary import summary_text

    buffer = StringIO()
    Console(file=buffer, width=120, highlight=False, color_system=None).print(summary_text(view, language))
    title = html.escape(str(view.evaluation["evaluation_id"]))
    return (
        f'<!doctype html><html lang="{language.value}"><meta charset="utf-8"><title>{title}</title>'
        f"<body><main><h1>{title}</h1><pre>{html.escape(buffer.getvalue())}</pre></main></body></html>"
    )
