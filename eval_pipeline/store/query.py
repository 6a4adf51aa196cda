"""Read-only SQL on the published database: no files, no network, no settings."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from eval_pipeline.errors import NothingPublished, QueryFailed


def query(database: Path, sql: str, parameters: Sequence[object] = ()) -> pl.DataFrame:
    """The rows of one query.

    Raises:
        NothingPublished: there is no database yet.
        QueryFailed: DuckDB's own words on what is wrong.
    """
    if not database.is_file():
        raise NothingPublished(path=database)
    locked: dict[str, Any] = {"enable_external_access": "false", "lock_configuration": "true", "autoinstall_known_extensions": "false",
              "autoload_known_extensions": "false"}  # fmt: skip
    try:
        with duckdb.connect(str(database), read_only=True, config=locked) as connection:
            relation = connection.sql(sql, params=list(parameters) or None)
            return pl.DataFrame() if relation is None else relation.pl()
    except duckdb.Error as error:
        raise QueryFailed(reason=str(error).splitlines()[0]) from error


def write_result(frame: pl.DataFrame, format_: str) -> bytes:
    """The rows as csv (formula-safe), json or parquet."""
    if format_ == "csv":
        return safe_csv(frame).encode()
    if format_ == "json":
        return frame.write_json().encode()
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def safe_csv(frame: pl.DataFrame) -> str:
    """CSV whose texts no spreadsheet takes for a formula: a leading `= + - @`, tab or return gets an apostrophe."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    flat = frame.with_columns(pl.col(name).map_elements(_joined, return_dtype=pl.String) for name in nested)
    texts = [name for name, dtype in flat.schema.items() if dtype == pl.String()]
    risky = r"^[=+\-@\t\r]"
    return flat.with_columns(
        pl.when(pl.col(name).str.contains(risky)).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in texts
    ).write_csv()


def _joined(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, pl.Series | list) else str(values)
