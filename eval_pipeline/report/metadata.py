"""A frame as a small Markdown table, hostile text inert; for Dagster metadata and Markdown reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from eval_pipeline.report.inert import line

_MARKUP = re.compile(r"[|<\[\]`*\\!&$~@#]|(?<!\w)_|_(?!\w)|:(?=\S)|(?<=www)\.")
"""What Markdown, HTML or a forge reads as more than text: an escaped colon keeps bare addresses from becoming links, an
escaped dollar keeps mathematics from being read."""


def markdown_table(frame: pl.DataFrame, columns: Sequence[str], limit: int) -> str:
    """At most `limit` rows of the chosen columns; says how many are left out. Cells are cut at 160 characters."""
    shown = frame.select(columns).head(limit)
    text = table(columns, [list(row) for row in shown.iter_rows()])
    rest = frame.height - shown.height
    return f"{text}\n\n… {rest} more" if rest else text


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table of any values."""
    lines = [_row([escaped(head) for head in heads]), _row(["---"] * len(heads))]
    return "\n".join([*lines, *(_row([cell(value) for value in row]) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def escaped(text: object, limit: int = 0) -> str:
    """Text on one line that Markdown and HTML read as nothing but text."""
    return _MARKUP.sub(_entity, line(text, limit))


def _entity(match: re.Match[str]) -> str:
    # Escaped or not, a forge mentions people and issues; the zero-width space behind the sign prevents it.
    return f"&#{ord(match.group())};" + ("&#8203;" if match.group() in "@#" else "")


def cell(value: object) -> str:
    """One value as a Markdown cell: null as `–`, numbers at three decimals, texts cut at 160 characters and escaped."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    return escaped(", ".join(map(str, value)) if isinstance(value, list | tuple) else value, 160)
