"""A frame as a small Markdown table, hostile text inert; for Dagster metadata and Markdown reports."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def markdown_table(frame: pl.DataFrame, columns: Sequence[str], limit: int) -> str:
    """At most `limit` rows of the chosen columns; says how many are left out. Cells are cut at 160 characters."""
    shown = frame.select(columns).head(limit)
    lines = [_line(columns), _line(["---"] * len(columns)), *(_line([cell(v) for v in row]) for row in shown.iter_rows())]
    rest = frame.height - shown.height
    return "\n".join([*lines, f"\n… {rest} more"] if rest else lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def cell(value: object) -> str:
    """One value as a Markdown cell: null as `–`, numbers at three decimals, every markup character escaped."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    visible = "".join(c if c.isprintable() else " " for c in text)
    cut = visible if len(visible) <= 160 else visible[:159] + "…"
    return "".join(f"&#{ord(c)};" if c in "|<>[]()`*_\\!#&~" else c for c in cut)
