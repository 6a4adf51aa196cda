"""`query`: read-only SQL on the published database."""

from __future__ import annotations

import sys
from pathlib import Path

from eval_pipeline.cli.console import emit, out, printable
from eval_pipeline.cli.headings import cell, heading
from eval_pipeline.errors import UnknownName


def run_query(database: Path, sql: str, format_: str, out_file: Path | None) -> None:
    """Prints or writes the rows of one query."""
    from eval_pipeline.store.query import query, write_result

    formats = ("table", "csv", "json", "parquet")
    if format_ not in formats:
        raise UnknownName(kind="format", name=format_, known=formats)
    frame = query(database, sql)
    if out_file is not None:
        out_file.write_bytes(write_result(frame, "csv" if format_ == "table" else format_))
        return
    if format_ == "parquet":
        sys.stdout.buffer.write(write_result(frame, "parquet"))
    elif format_ == "json":
        emit(frame.to_dicts())
    elif format_ == "csv":
        sys.stdout.write(write_result(frame, "csv").decode())
    else:
        out().print(_drawn(frame.columns, frame.rows()))


def table(columns: list[str], rows: list[tuple[object, ...]]):  # noqa: ANN201
    """A rich table with headings for people; null as `–`, long cells cut, markup inert."""
    readable = [tuple(map(cell, columns, row)) for row in rows]
    return _drawn([heading(name) for name in columns], readable)


def _drawn(columns: list[str], rows: list[tuple[object, ...]]):  # noqa: ANN202
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD)
    for name in columns:
        drawn.add_column(Text(printable(name)))
    for row in rows:
        drawn.add_row(*[Text(_cell(value)) for value in row])
    return drawn


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = printable(str(value)).replace("\n", " ")
    return text if len(text) <= 80 else text[:79] + "…"
