"""The Parquet tables: immutable parts, written under a temporary name and renamed. The truth of every result.

What the rows mean belongs to the stages; what people read of them, to `publish.py`.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import polars as pl

from eval_pipeline.errors import ExtraMissing, FileUnreadable, NotWritable, SettingInvalid
from eval_pipeline.tables import EVALUATIONS, Table

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

LONGEST = 200
"""Bytes of a quoted value in a folder name; file systems allow 255, and one Hangul syllable takes nine."""


class Warehouse:
    """Tables under one root: a local folder, or any fsspec URL.

    A part is `tables/<table>/<first key column>=<value>/part-<part>.parquet`. There are no locks: writers of different
    values or parts never meet, and a reader sees whole parts only.

    Raises:
        ExtraMissing, SettingInvalid: nothing here can open such a URL.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.is_local = "://" not in root
        self._fs, self._base = _open(root, is_local=self.is_local)

    def folder(self, table: Table, value: str | None = None) -> str:
        """Folder of a table, or of one value of its first key column."""
        base = f"{self._base}/tables/{table.name}"
        return base if value is None else f"{base}/{table.key[0]}={folder_name(value)}"

    def write(
        self, table: Table, value: str, frame: pl.DataFrame, part: int | str = 0, *, replace: bool = False
    ) -> None:
        """Writes one part whole. An existing part stays as it is unless `replace`.

        Args:
            table: what the rows are.
            value: the value of the first key column that every row has.
            frame: exactly the columns of the table, in any order.
            part: number or name of the part within the value.
            replace: overwrite the part, in one step.

        Raises:
            ValueError: the frame is not of this table and value: other columns, types, or null where none may be.
            NotWritable: the warehouse cannot be written.
        """
        checked = conform(table, frame)
        if not (checked[table.key[0]] == value).all():
            raise ValueError(f"{table.name}: every {table.key[0]} of the part must be {value!r}")
        path = self._part(table, value, part)
        if not replace and self.has_part(table, value, part):
            return
        buffer = io.BytesIO()
        checked.write_parquet(buffer, compression="zstd")
        try:
            self._put(path, buffer.getvalue())
        except OSError as error:
            raise NotWritable(path=path, reason=error.strerror or str(error)) from error

    def has_part(self, table: Table, value: str, part: int | str = 0) -> bool:
        """Whether this part was written."""
        return bool(self._fs.exists(self._part(table, value, part)))

    def parts(self, table: Table, value: str | None = None) -> list[str]:
        """Paths of a table's parts, sorted."""
        folders = self._folders(table) if value is None else [self.folder(table, value)]
        return [path for folder in folders for path in self._parts_in(folder)]

    def values(self, table: Table) -> list[str]:
        """Values of the table's first key column that have parts, sorted."""
        found = set()
        for folder in self._folders(table):
            parts = self._parts_in(folder)
            if parts:
                named = folder.rsplit("=", 1)[1]
                # A shortened name does not hold the value; the rows do.
                found.add(self._value(table, parts) if "~" in named else unquote(named))
        return sorted(found)

    def read(self, table: Table, value: str | Sequence[str] | None = None) -> pl.DataFrame:
        """All rows of a table, or those of one value or several; an absent one has no rows.

        Raises:
            FileUnreadable: a part is damaged or gone.
        """
        chosen = [value] if value is None or isinstance(value, str) else list(dict.fromkeys(value))
        return self.read_parts(table, [path for one in chosen for path in self.parts(table, one)])

    def scan(self, table: Table, value: str | None = None) -> pl.LazyFrame:
        """The same rows, read only as far as what is done with them needs."""
        return self._scan(table, self.parts(table, value))

    def read_parts(self, table: Table, paths: Sequence[str]) -> pl.DataFrame:
        """The rows of some parts. A column added since they were written is null there; a dropped one is left out.

        Raises:
            FileUnreadable: a part is damaged or gone.
        """
        try:
            return self._scan(table, paths).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = str(error).splitlines()[0]
            raise FileUnreadable(path=_damaged(paths) or self.folder(table), reason=reason) from error

    def evaluations(self) -> pl.DataFrame:
        """`evaluations` rows, oldest first; an evaluation without its row is incomplete and is not here."""
        return self.read(EVALUATIONS).sort("started_at", "evaluation_id")

    def drop(self, table: Table, value: str) -> None:
        """Removes the parts of one value, for a rerun of the same evaluation.

        Raises:
            NotWritable: they cannot be removed.
        """
        try:
            for path in self.parts(table, value):
                self._fs.rm(path)
        except OSError as error:
            raise NotWritable(path=self.folder(table, value), reason=error.strerror or str(error)) from error

    def _part(self, table: Table, value: str, part: int | str) -> str:
        name = f"{part:06d}" if isinstance(part, int) else folder_name(part)
        return f"{self.folder(table, value)}/part-{name}.parquet"

    def _folders(self, table: Table) -> list[str]:
        return self._list(self.folder(table), f"{table.key[0]}=")

    def _parts_in(self, folder: str) -> list[str]:
        return [path for path in self._list(folder, "part-") if path.endswith(".parquet")]

    def _list(self, folder: str, prefix: str) -> list[str]:
        """Paths in a folder by name; read anew, since another machine may have written."""
        self._fs.invalidate_cache(folder)
        try:
            found = self._fs.ls(folder, detail=False)
        except FileNotFoundError:
            return []
        paths = (str(path).rstrip("/") for path in found)
        return sorted(path for path in paths if path.rsplit("/", 1)[-1].startswith(prefix))

    def _value(self, table: Table, parts: Sequence[str]) -> str:
        values = self.read_parts(table, parts[:1])[table.key[0]]
        return str(values[0]) if len(values) else ""

    def _scan(self, table: Table, paths: Sequence[str]) -> pl.LazyFrame:
        if not paths:
            return table.frame().lazy()
        sources: Any = list(paths) if self.is_local else [io.BytesIO(self._fs.cat_file(path)) for path in paths]
        return pl.scan_parquet(
            sources, schema=table.schema, missing_columns="insert", extra_columns="ignore", hive_partitioning=False,
            glob=False,
        ).select(list(table.schema))  # fmt: skip

    def _put(self, path: str, content: bytes) -> None:
        if not self.is_local:
            self._fs.pipe_file(path, content)  # one PUT is atomic in an object store
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def _open(root: str, *, is_local: bool) -> tuple[Any, str]:
    import fsspec

    try:
        return fsspec.core.url_to_fs(root, **({"auto_mkdir": True} if is_local else {}))
    except ImportError as error:
        raise ExtraMissing(feature=f"A warehouse at {root}", extra=root.partition("://")[0]) from error
    except ValueError as error:
        known = "a folder, or a URL of a file system that fsspec knows, such as s3://bucket/warehouse"
        raise SettingInvalid(name="EVAL_WAREHOUSE", value=root, allowed=known) from error


def folder_name(value: str) -> str:
    """A value as one path component that cannot leave its folder, the same for equal values only.

    A value is data, so all but letters, digits, `_` and `-` is percent-encoded. One that grows too long for a file
    system is cut and ends in `~` and its hash; `~` occurs in no other name.
    """
    quoted = quote(value, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(quoted) <= LONGEST:
        return quoted
    start = re.sub(r"%[0-9A-F]?$", "", quoted[:100])
    return f"{start}~{hashlib.sha256(value.encode()).hexdigest()}"


def conform(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the table's columns in order.

    Raises:
        ValueError: it is not of this table.
    """
    if set(frame.columns) != set(table.schema):
        raise ValueError(f"{table.name}: columns differ: {sorted(set(frame.columns) ^ set(table.schema))}")
    for name, dtype in table.schema.items():
        if not _fits(frame.schema[name], dtype):
            raise ValueError(f"{table.name}.{name} is {frame.schema[name]}, not {dtype}")
    typed = frame.select(pl.col(name).cast(dtype) for name, dtype in table.schema.items())
    for column in table.columns:
        series = typed[column.name]
        if not column.is_nullable and series.null_count():
            raise ValueError(f"{table.name}.{column.name} has {series.null_count()} null(s) and may have none")
        if series.dtype.is_float() and not series.drop_nulls().is_finite().all():
            raise ValueError(f"{table.name}.{column.name} holds NaN or infinity; unknown is null")
    return typed


def _fits(have: PolarsDataType, want: PolarsDataType) -> bool:
    """Whether every value of one type is one of the other: the same, all null, a narrower number, a category."""
    if have in {want, pl.Null()}:
        return True
    if isinstance(have, pl.List) and isinstance(want, pl.List):
        return _fits(have.inner, want.inner)
    if isinstance(have, pl.Datetime) and isinstance(want, pl.Datetime):
        return have.time_zone == want.time_zone
    if have.is_integer():
        return want.is_numeric()
    return (have == pl.Float32() and want == pl.Float64()) or (
        have in {pl.Categorical, pl.Enum} and want == pl.String()
    )


def _damaged(paths: Sequence[str]) -> str | None:
    """The first local part that is no whole Parquet file, which ends in its magic bytes."""
    for path in map(Path, paths):
        if not path.is_file() or path.read_bytes()[-4:] != b"PAR1":
            return str(path)
    return None
