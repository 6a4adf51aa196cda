"""The published database: rebuilt from the Parquet tables and swapped whole, so readers and writers never meet.

The tables come from `tables.py`, the views from `sql/views/`; no other SQL of the results belongs here.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import duckdb
import polars as pl
from filelock import FileLock

from eval_pipeline.errors import NotWritable
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import DATASET_CHANGES, DATASET_VERSIONS, EVALUATIONS, TABLES, Table

FORMAT = "v1.4.0"
"""Files of DuckDB 2 are readable by 1.4 and 1.5 clients only when written so."""
PARTS_AT_ONCE = 200
"""Parts in memory at a time: at most 1,000 items each."""
_TYPES = {
    pl.String(): "varchar", pl.Int64(): "bigint", pl.Float64(): "double", pl.Boolean(): "boolean",
    pl.Datetime("us", "UTC"): "timestamptz", pl.List(pl.String): "varchar[]",
}  # fmt: skip
_WHOLE = (DATASET_VERSIONS, DATASET_CHANGES)
"""Tables of which every part repeats the dataset's whole log."""
VIEWS = files("eval_pipeline.store") / "sql" / "views"


@dataclass(frozen=True, slots=True)
class View:
    """One view: what it answers, comments of columns by name, and its query."""

    name: str
    comment: str
    columns: dict[str, str]
    query: str


def publish(warehouse: Warehouse, folder: Path | None = None) -> Path:
    """Builds `results.duckdb` beside its place and renames it there; returns its path.

    A crash at any point leaves the old file whole. One publisher at a time, by a file lock.

    Args:
        warehouse: where the tables are.
        folder: local folder of the database; the warehouse's own when null.

    Raises:
        NotWritable: the folder cannot be written, or the disk is full.
        FileUnreadable: a Parquet part is damaged.
        ValueError: the warehouse is in a bucket and no folder is given.
    """
    if folder is None and not warehouse.is_local:
        raise ValueError("a warehouse in a bucket is published to a local folder; name it")
    home = folder or Path(warehouse.root)
    target = home / "results.duckdb"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".publish.lock"):
            _clean(home)
            building = home / f".results-{uuid.uuid4().hex}.duckdb"
            try:
                _build(building, warehouse)
                building.chmod(0o444)
                _swap(building, target)
            finally:
                _clean(home)
    except OSError as error:
        raise NotWritable(path=home, reason=error.strerror or str(error)) from error
    except duckdb.Error as error:
        raise NotWritable(path=target, reason=str(error).splitlines()[0]) from error
    return target


def _swap(building: Path, target: Path) -> None:
    """Puts the new file in place.

    A reader who opened the old file for writing and died leaves a log that would make the new file unreadable. It goes
    before: without it the old file is still whole; and after: one still alive may have written in between.
    """
    log = target.with_name(f"{target.name}.wal")
    log.unlink(missing_ok=True)
    os.replace(building, target)  # noqa: PTH105 - one atomic call, named as what it is
    log.unlink(missing_ok=True)


def _clean(home: Path) -> None:
    for leftover in home.glob(".results-*"):
        leftover.unlink(missing_ok=True)


def _build(path: Path, warehouse: Warehouse) -> None:
    # Its own row is written last, so what is finished now has all its other rows when those are listed.
    finished = warehouse.parts(EVALUATIONS)
    with duckdb.connect(str(path), config={"storage_compatibility_version": FORMAT}) as connection:
        for table in TABLES.values():
            _load(connection, table, warehouse, finished if table is EVALUATIONS else warehouse.parts(table))
        connection.execute("create table publication (published_at timestamptz not null)")
        connection.execute("comment on table publication is 'One row: when this file was published'")
        connection.execute("comment on column publication.published_at is 'When this file was published (UTC)'")
        connection.execute("insert into publication values (?)", [datetime.now(UTC)])
        for view in views():
            connection.execute(f"create view {view.name} as {view.query}")
            connection.execute(f"comment on view {view.name} is {_text(view.comment)}")
            for column in _column_names(connection, view.name):
                connection.execute(f'comment on column {view.name}."{column}" is {_text(view.columns[column])}')
        connection.execute("checkpoint")


def _load(connection: duckdb.DuckDBPyConnection, table: Table, warehouse: Warehouse, parts: Sequence[str]) -> None:
    """Creates one table with its comments and fills it."""
    columns = ", ".join(f"{column.name} {_TYPES[column.dtype]}" for column in table.columns)
    connection.execute(f"create table {table.name} ({columns})")
    missing: set[str] = set()
    size = max(1, len(parts)) if table in _WHOLE else PARTS_AT_ONCE
    for start in range(0, len(parts), size):
        rows = warehouse.read_parts(table, parts[start : start + size])
        if table in _WHOLE:
            rows = rows.unique(table.key, keep="last", maintain_order=True)
        missing |= {name for name in rows.columns if rows[name].null_count()}
        connection.register("incoming", rows.to_arrow())
        connection.execute(f"insert into {table.name} select * from incoming")  # noqa: S608 - names are ours
        connection.unregister("incoming")
    for column in table.columns:
        # A column newer than some part is null there; such a warehouse is published all the same.
        if not column.is_nullable and column.name not in missing:
            connection.execute(f"alter table {table.name} alter {column.name} set not null")
    connection.execute(f"comment on table {table.name} is {_text('One row is ' + table.row)}")
    for column in table.columns:
        connection.execute(f"comment on column {table.name}.{column.name} is {_text(column.comment)}")


def _column_names(connection: duckdb.DuckDBPyConnection, view: str) -> list[str]:
    rows = connection.execute("select column_name from duckdb_columns() where table_name = ?", [view]).fetchall()
    return [name for (name,) in rows]


def _text(text: str) -> str:
    """A SQL string literal; comments take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def views() -> Iterator[View]:
    """Every view, in file-name order.

    The first line of a file is `-- <comment>`; lines `-- @column: text` comment columns of the view's own. Every other
    column takes the comment of the first table after `from` or `join` that has one of its name.
    """
    for entry in sorted(VIEWS.iterdir(), key=lambda file: file.name):
        lines = entry.read_text(encoding="utf-8").splitlines()
        own = dict(line.removeprefix("-- @").split(": ", 1) for line in lines if line.startswith("-- @"))
        query = "\n".join(line for line in lines if not line.startswith("--"))
        comments: dict[str, str] = {}
        for name in filter(TABLES.__contains__, re.findall(r"\b(?:from|join)\s+(\w+)", query)):
            for column in TABLES[name].columns:
                comments.setdefault(column.name, column.comment)
        yield View(entry.name.removesuffix(".sql"), lines[0].removeprefix("-- "), comments | own, query)
