"""Small charts of a step's table as Markdown images with the drawing inside, which Dagster's UI shows as they are."""

from __future__ import annotations

import base64
import json

import polars as pl

from eval_pipeline.report import charts, sections
from eval_pipeline.report.figures import number
from eval_pipeline.report.metadata import escaped
from eval_pipeline.report.words import words
from eval_pipeline.vocabulary import Language


def images(step: str, frame: pl.DataFrame, language: Language) -> str | None:
    """The charts of `summaries` or `calibrations` over the whole set; null for other steps and where nothing can be drawn."""
    drawn = {"summaries": _ranges, "calibrations": _agreement}.get(step)
    if drawn is None:
        return None
    rows = frame.filter(pl.col("stratum") == "all").to_dicts()
    return "\n\n".join(text for row in rows if (text := drawn(row, language))) or None


def _ranges(row: sections.Row, language: Language) -> str | None:
    """Mean, interval and bounds if missing grades were worst or best, on [0, 1]."""
    del language  # no words in it
    if row["mean"] is None:
        return None
    interval = (row["mean_interval_lower"], row["mean_interval_upper"])
    bounds = (row["mean_lower_bound"], row["mean_upper_bound"])
    chart = charts.ranges(row["mean"], interval, bounds, row["metric"])
    return f"{_image(chart, row['metric'])} {escaped(row['metric'])} {number(row['mean'])}"


def _agreement(row: sections.Row, language: Language) -> str | None:
    """The judge's scores against the labels."""
    found = json.loads(row["statistics"] or "{}").get("confusion") or ()
    cells = [charts.Cell(cell["human"], cell["judge"], cell["count"]) for cell in found]
    if not cells:
        return None
    return (
        f"{escaped(row['metric'])}\n\n{_image(sections.calibration_chart(row, cells, words(language)), row['metric'])}"
    )


def _image(svg: str, alt: str) -> str:
    drawing = base64.b64encode(charts.standalone(svg, is_dark_too=False).encode()).decode()
    return f"![{escaped(alt)}](data:image/svg+xml;base64,{drawing})"
