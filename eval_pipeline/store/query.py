"""Read-only SQL on the published database: no files, no network, no settings. How rows are printed is the CLI's."""

from __future__ import annotations

import io
import os
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from eval_pipeline.errors import NothingPublished, QueryFailed
from eval_pipeline.spreadsheets import safe_csv

_LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_PLAIN = re.compile(
    r"(BOOLEAN|U?(TINY|SMALL|BIG)INT|U?INTEGER|U?HUGEINT|FLOAT|DOUBLE|VARCHAR|DATE|TIME|TIMESTAMP( WITH TIME ZONE)?"
    r"|DECIMAL\(\d+,\d+\))(\[\])*"
)
"""Types that every output format has; others, intervals and unions say, come as DuckDB writes them."""
_YEARS = (-719162, 2932896)
"""Days from 1970-01-01 to 0001-01-01 and to 9999-12-31."""
_TICKS = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def query(database: Path, sql: str, parameters: Sequence[object] = ()) -> pl.DataFrame:
    """The rows of one query. Sums and decimals come as integers or floats; null stays null.

    Raises:
        NothingPublished: there is no database yet.
        QueryFailed: DuckDB's own words on what is wrong.
    """
    if not database.is_file():
        raise NothingPublished(path=database)
    try:
        with _opened(database) as connection:
            connection.execute("set TimeZone = 'UTC'")
            connection.execute("set lock_configuration = true")
            relation = connection.sql(sql, params=list(parameters) or None)
            return pl.DataFrame() if relation is None else _numbers(_checked(_plain(relation).pl()))
    except (duckdb.Error, pl.exceptions.PolarsError) as error:
        # DuckDB's own lines before the quotation of the query: what is wrong, and the name that was perhaps meant.
        raise QueryFailed(reason=" ".join(str(error).split("\n\n")[0].splitlines()[:2])) from error


def _opened(database: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the file as it was published.

    A program that opened it for writing leaves `results.duckdb.wal`, which holds what nobody published and may not even
    match the file. Under another name DuckDB finds the same file without that log.
    """
    if not database.with_name(f"{database.name}.wal").exists():
        return duckdb.connect(str(database), read_only=True, config=_LOCKED)
    alias = database.with_name(f".reader-{uuid.uuid4().hex}.duckdb")
    try:
        os.link(database, alias)
    except OSError:  # a folder that is not ours, or a file system without links: as it stands, then
        return duckdb.connect(str(database), read_only=True, config=_LOCKED)
    try:
        return duckdb.connect(str(alias), read_only=True, config=_LOCKED)
    finally:
        alias.unlink(missing_ok=True)


def _plain(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    types = [str(kind) for kind in relation.types]
    if all(_PLAIN.fullmatch(kind) for kind in types):
        return relation
    quoted = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
    shown = (
        name if _PLAIN.fullmatch(kind) else f"{name}::varchar as {name}"
        for name, kind in zip(quoted, types, strict=True)
    )
    return relation.project(", ".join(shown))


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame, unless it holds a time that Python cannot.

    Raises:
        QueryFailed: a date before year 1 or after 9999, or an infinite one.
    """
    for series in frame:
        if isinstance(series.dtype, pl.Date | pl.Datetime):
            ticks = _TICKS[series.dtype.time_unit] if isinstance(series.dtype, pl.Datetime) else 1
            days = series.drop_nulls().to_physical() // ticks
            if not days.is_between(*_YEARS).all():
                raise QueryFailed(reason=f"{series.name} holds a date outside the years 1 to 9999; cast it to varchar")
    return frame


def _numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Decimals as integers when they are whole and fit, else as floats."""
    changed = []
    for series in frame:
        if isinstance(series.dtype, pl.Decimal):
            whole = series.cast(pl.Int64, strict=False) if not series.dtype.scale else None
            fits = whole is not None and whole.null_count() == series.null_count()
            changed.append(whole if whole is not None and fits else series.cast(pl.Float64))
    return frame.with_columns(changed)


def write_result(frame: pl.DataFrame, format_: str) -> bytes:
    """The rows as csv (formula-safe), json or parquet."""
    if format_ == "csv":
        return safe_csv(_flat(frame)).encode()
    if format_ == "json":
        return frame.write_json().encode()
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(pl.col(name).map_elements(_joined, return_dtype=pl.String) for name in nested)


def _joined(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, pl.Series | list) else str(values)
