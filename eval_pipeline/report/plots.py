"""The charts of one evaluation as files: SVG that follows light and dark, or PNG on white."""

from __future__ import annotations

from collections.abc import Callable

from eval_pipeline.errors import UnknownName
from eval_pipeline.report import charts, sections
from eval_pipeline.report.view import EvaluationView
from eval_pipeline.report.words import words
from eval_pipeline.vocabulary import Language


def plots(view: EvaluationView, language: Language) -> dict[str, str]:
    """All charts by name, `distribution/METRIC`, `calibration/METRIC` and `trend/METRIC`, as the page holds them."""
    t = words(language)
    kinds: dict[str, Callable[..., list[sections.Row]]] = {
        "distribution": sections.distributions, "calibration": sections.trust, "trend": sections.trends,
    }  # fmt: skip
    return {
        f"{kind}/{row['metric']}": row["chart"] for kind, rows in kinds.items() for row in rows(view, t) if row["chart"]
    }


def chart_svg(view: EvaluationView, name: str, language: Language) -> str:
    """One chart as a stand-alone SVG document.

    Raises:
        UnknownName: this evaluation has no such chart.
    """
    return charts.standalone(_named(view, name, language))


def chart_png(view: EvaluationView, name: str, language: Language, scale: float = 2) -> bytes:
    """One chart as a PNG, `scale` times its nominal size.

    Raises:
        UnknownName: this evaluation has no such chart.
    """
    return charts.png(_named(view, name, language), scale)


def _named(view: EvaluationView, name: str, language: Language) -> str:
    found = plots(view, language)
    if name not in found:
        raise UnknownName(kind="chart", name=name, known=found)
    return found[name]
