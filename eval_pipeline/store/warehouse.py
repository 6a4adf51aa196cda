"""The Parquet tables: immutable parts, written under a temporary name and renamed. The truth of every result."""

from __future__ import annotations

import io
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import polars as pl

from eval_pipeline.errors import NotWritable
from eval_pipeline.tables import Table


class Warehouse:
    """Tables under one root: a local folder, or any fsspec URL.

    A part is `tables/<table>/<first key column>=<value>/part-<part>.parquet`. There are no locks: writers of different
    values or parts never meet, and a reader sees whole parts only.
    """

    def __init__(self, root: str) -> None:
        import fsspec

        self.root = root
        self.is_local = "://" not in root
        self._fs, self._base = fsspec.core.url_to_fs(root, **({} if "://" in root else {"auto_mkdir": True}))

    def folder(self, table: Table, value: str | None = None) -> str:
        """Folder of a table, or of one value of its first key column."""
        base = f"{self._base}/tables/{table.name}"
        # A value is data: quoted whole, so that no name leaves its folder; a leading dot is quoted too.
        return base if value is None else f"{base}/{table.key[0]}={quote(value, safe='').replace('.', '%2E')}"

    def write(
        self, table: Table, value: str, frame: pl.DataFrame, *, part: int | str = 0, replace: bool = False
    ) -> None:
        """Writes one part whole. An existing part stays as it is unless `replace`.

        Raises:
            ValueError: the frame is not of this table: other columns, types, or null where none may be.
            NotWritable: the warehouse cannot be written.
        """
        checked = conform(table, frame)
        name = f"{part:06d}" if isinstance(part, int) else quote(part, safe="")
        path = f"{self.folder(table, value)}/part-{name}.parquet"
        if not replace and self._fs.exists(path):
            return
        buffer = io.BytesIO()
        checked.write_parquet(buffer, compression="zstd")
        try:
            self._put(path, buffer.getvalue())
        except OSError as error:
            raise NotWritable(path=path, reason=error.strerror or str(error)) from error

    def _put(self, path: str, content: bytes) -> None:
        if not self.is_local:
            self._fs.pipe_file(path, content)  # one PUT is atomic in an object store
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_bytes(content)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    def parts(self, table: Table, value: str | None = None) -> list[str]:
        """Paths of a table's parts, sorted."""
        pattern = (
            f"{self.folder(table, value)}/part-*.parquet"
            if value is not None
            else f"{self.folder(table)}/*/part-*.parquet"
        )
        return sorted(self._fs.glob(pattern.replace("[", "[[]")))

    def values(self, table: Table) -> list[str]:
        """Values of the table's first key column that have parts."""
        return sorted({unquote(part.rsplit("/", 2)[-2].split("=", 1)[1]) for part in self.parts(table)})

    def read(self, table: Table, value: str | None = None) -> pl.DataFrame:
        """All rows of a table, or those of one value; an absent one has no rows."""
        return self.read_parts(table, self.parts(table, value))

    def read_parts(self, table: Table, paths: Sequence[str]) -> pl.DataFrame:
        """The rows of some parts. A column added since they were written is null there."""
        frames = []
        for path in paths:
            frame = pl.read_parquet(path) if self.is_local else pl.read_parquet(io.BytesIO(self._fs.cat_file(path)))
            missing = [
                pl.lit(None, dtype).alias(name) for name, dtype in table.schema.items() if name not in frame.columns
            ]
            frames.append(frame.with_columns(missing).select(list(table.schema)))
        return pl.concat(frames) if frames else table.frame()

    def drop(self, table: Table, value: str) -> None:
        """Removes the parts of one value."""
        if self._fs.exists(self.folder(table, value)):
            self._fs.rm(self.folder(table, value), recursive=True)


def conform(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the table's columns in order.

    Raises:
        ValueError: it is not of this table.
    """
    if set(frame.columns) != set(table.schema):
        raise ValueError(f"{table.name}: columns differ: {sorted(set(frame.columns) ^ set(table.schema))}")
    typed = frame.select(pl.col(name).cast(dtype) for name, dtype in table.schema.items())
    for column in table.columns:
        series = typed[column.name]
        if not column.is_nullable and series.null_count():
            raise ValueError(f"{table.name}.{column.name} has {series.null_count()} null(s) and may have none")
        if series.dtype.is_float() and not series.drop_nulls().is_finite().all():
            raise ValueError(f"{table.name}.{column.name} holds NaN or infinity; unknown is null")
    return typed
