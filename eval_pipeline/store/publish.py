"""The published database: rebuilt from the Parquet tables and swapped whole, so readers and writers never meet."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import duckdb
import polars as pl
from filelock import FileLock

from eval_pipeline.errors import NotWritable
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import TABLES, Table

FORMAT = "v1.4.0"
"""Files of DuckDB 2 are readable by 1.4 and 1.5 clients only when written so."""
_TYPES = {
    pl.String(): "varchar", pl.Int64(): "bigint", pl.Float64(): "double", pl.Boolean(): "boolean",
    pl.Datetime("us", "UTC"): "timestamptz", pl.List(pl.String): "varchar[]",
}  # fmt: skip
VIEWS = files("eval_pipeline.store") / "sql" / "views"


def publish(warehouse: Warehouse, folder: Path | None = None) -> Path:
    """Builds `results.duckdb` beside its place and renames it there; returns its path.

    A crash at any point leaves the old file whole. One publisher at a time, by a file lock.

    Raises:
        NotWritable: the folder cannot be written.
    """
    home = folder or Path(warehouse.root)
    target = home / "results.duckdb"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".publish.lock"):
            for leftover in home.glob(".results-*"):
                leftover.unlink(missing_ok=True)
            building = home / f".results-{uuid.uuid4().hex}.duckdb"
            _build(building, warehouse)
            building.chmod(0o444)
            # A reader who opened the old file for writing and died leaves a log that would make the new file unreadable.
            # It goes first: without it the old file is still whole; with it nobody could open the new one.
            target.with_name("results.duckdb.wal").unlink(missing_ok=True)
            os.replace(building, target)  # noqa: PTH105 - one atomic call, named as what it is
    except OSError as error:
        raise NotWritable(path=home, reason=error.strerror or str(error)) from error
    return target


def _build(path: Path, warehouse: Warehouse) -> None:
    with duckdb.connect(str(path), config={"storage_compatibility_version": FORMAT}) as connection:
        for table in TABLES.values():
            _create(connection, table)
            rows = warehouse.read(table)
            if rows.height:
                connection.register("incoming", rows.to_arrow())
                connection.execute(f"insert into {table.name} select * from incoming")  # noqa: S608 - names are ours
                connection.unregister("incoming")
        connection.execute("create table publication (published_at timestamptz not null)")
        connection.execute("comment on table publication is 'One row: when this file was published'")
        connection.execute("comment on column publication.published_at is 'When this file was published (UTC)'")
        connection.execute("insert into publication values (?)", [datetime.now(UTC)])
        for name, comment, columns, sql in views():
            connection.execute(f"create view {name} as {sql}")
            connection.execute(f"comment on view {name} is {_text(comment)}")
            _comment_view(connection, name, columns)
        connection.execute("checkpoint")


def _create(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    columns = ", ".join(f"{c.name} {_TYPES[c.dtype]}{'' if c.is_nullable else ' not null'}" for c in table.columns)
    connection.execute(f"create table {table.name} ({columns})")
    connection.execute(f"comment on table {table.name} is {_text('One row is ' + table.row)}")
    for column in table.columns:
        connection.execute(f"comment on column {table.name}.{column.name} is {_text(column.comment)}")


def _text(text: str) -> str:
    """A SQL string literal; comments take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def _comment_view(connection: duckdb.DuckDBPyConnection, view: str, own: dict[str, str]) -> None:
    """Comments on a view's columns: its own, else the table column of the same name."""
    known = {c.name: c.comment for table in TABLES.values() for c in table.columns} | own
    for (name,) in connection.execute(
        "select column_name from duckdb_columns() where table_name = ?", [view]
    ).fetchall():
        connection.execute(f'comment on column {view}."{name}" is {_text(known[name])}')


def views() -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Name, comment, comments of own columns, and query of every view, in file-name order.

    The first line of a file is `-- <comment>`; lines `-- @column: text` comment columns that no table has.
    """
    for entry in sorted(VIEWS.iterdir(), key=lambda file: file.name):
        lines = entry.read_text(encoding="utf-8").splitlines()
        own = dict(line.removeprefix("-- @").split(": ", 1) for line in lines if line.startswith("-- @"))
        query = "\n".join(line for line in lines if not line.startswith("--"))
        yield entry.name.removesuffix(".sql"), lines[0].removeprefix("-- "), own, query
