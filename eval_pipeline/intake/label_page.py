"""The labelling page: one HTML file that needs no server and no network. Its look and keys are in `label_page.html`."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from eval_pipeline.metrics.declaration import Metric
from eval_pipeline.vocabulary import Language

SHARES = (0, 0.25, 0.5, 0.75, 1)
"""What the number keys stand for where people give a share; a box takes any other."""


def scale_text(metric: Metric, language: Language) -> str:
    """The scale people label on, in a sentence."""
    if metric.label_scale is None:
        return "0에서 1 사이의 비율로 매기세요." if language == Language.KO else "Give a share from 0 to 1."
    grades = " / ".join(map(str, metric.label_scale))
    return f"점수: {grades} (클수록 좋음)" if language == Language.KO else f"Scores: {grades} (higher is better)"


def page(sheet: str, tasks: Sequence[Mapping[str, Any]], metric: Metric, annotator: str, language: Language) -> str:
    """The page for one person.

    Args:
        sheet: id under which progress is kept in the browser and the result is returned.
        tasks: item_id, content_sha256 and texts (field name to text) each.
        annotator: shown, and part of the result.
        language: the page opens in; a key switches.
    """
    data = {
        "sheet": sheet, "metric": metric.name, "annotator": annotator, "tasks": tasks, "language": language.value,
        "choices": metric.label_scale or SHARES, "is_share": metric.label_scale is None,
        "summary": {str(one): text for one, text in metric.summary.items()},
        "scale": {one.value: scale_text(metric, one) for one in Language},
    }  # fmt: skip
    # Inside a script element only `<` can end it or open a comment; JSON may write it by its number.
    written = (
        json.dumps(data, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    template = files("eval_pipeline.intake").joinpath("label_page.html").read_text(encoding="utf-8")
    title = html.escape(f"{metric.name} · {annotator}")
    return template.replace("%TITLE%", title).replace("%LANGUAGE%", language.value).replace("%DATA%", written)
