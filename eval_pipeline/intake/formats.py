"""Files in: any supported format as rows of text and lists, with the line each came from. Mapping is `schemas`' business.

Lossless: text stays text. "2007-06-29", "007", "NA" and "1e5" in a CSV or XLSX are what they look like.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from eval_pipeline.errors import DatasetInvalid, FileUnreadable, UnknownName

Row = tuple[int, dict[str, Any]]
"""Line (or row) number from 1, and the fields."""


def read_rows(path: Path) -> list[Row]:
    """All rows of a file, by its suffix.

    Raises:
        FileUnreadable: it cannot be read, or its encoding is none of UTF-8, UTF-16 and cp949.
        UnknownName: its format is not known.
        DatasetInvalid: rows that cannot be read; all of them are named.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        return _arrow_folder(path)
    if not path.exists():
        raise FileUnreadable(path=path, reason="no such file")
    if suffix not in READERS:
        raise UnknownName(kind="file format", name=suffix or path.name, known=READERS)
    problems: list[str] = []
    try:
        rows = list(READERS[suffix](path, problems))
    except OSError as error:
        raise FileUnreadable(path=path, reason=error.strerror or str(error)) from error
    if problems:
        raise DatasetInvalid(
            path=path.name, count=len(problems), problems="\n".join(f"  {path.name}:{p}" for p in problems[:50])
        )
    return rows


def decode(path: Path) -> str:
    """The file's text: UTF-8 with or without mark, UTF-16 with mark, else cp949.

    Raises:
        FileUnreadable: it is none of these.
    """
    raw = path.read_bytes()
    encodings = ("utf-16",) if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", "cp949")
    for encoding in encodings:
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise FileUnreadable(path=path, reason="its encoding is none of UTF-8, UTF-16 and cp949")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def loads(text: str) -> Any:
    """Strict JSON: NaN and Infinity are errors."""
    return json.loads(text, parse_constant=_refuse_constant)


def _jsonl(path: Path, problems: list[str]) -> Iterator[Row]:
    # Not splitlines: it cuts at characters that JSON allows inside strings.
    for number, line in enumerate(decode(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = loads(line)
        except (json.JSONDecodeError, ValueError, RecursionError) as error:
            problems.append(f"{number}: not JSON: {getattr(error, 'msg', error)}")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(f"{number}: a {type(row).__name__}, not an object with fields")


def _json(path: Path, problems: list[str]) -> Iterator[Row]:
    try:
        whole = loads(decode(path))
    except (json.JSONDecodeError, ValueError, RecursionError) as error:
        problems.append(f"1: not JSON: {getattr(error, 'msg', error)}")
        return
    if isinstance(whole, dict):
        lists = [value for value in whole.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
        whole = lists[0] if len(lists) == 1 else whole
    if not isinstance(whole, list):
        problems.append("1: not a list of objects")
        return
    for number, row in enumerate(whole, 1):
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(f"{number}: a {type(row).__name__}, not an object with fields")


def _separated(separator: str) -> Callable[[Path, list[str]], Iterator[Row]]:
    def read(path: Path, problems: list[str]) -> Iterator[Row]:
        csv.field_size_limit(2**31 - 1)
        reader = csv.reader(io.StringIO(decode(path), newline=""), delimiter=separator, strict=True)
        try:
            header = next(reader, None)
            if not header:
                problems.append("1: no header line")
                return
            if len(set(header)) < len(header):
                problems.append("1: a column name occurs twice")
                return
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    problems.append(f"{reader.line_num}: {len(cells)} cells where the header has {len(header)}")
                    continue
                yield reader.line_num, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            problems.append(f"{reader.line_num}: {error}")

    return read


def _xlsx(path: Path, problems: list[str]) -> Iterator[Row]:
    import zipfile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError) as error:
        problems.append(f"1: not a spreadsheet: {error}")
        return
    rows = book.worksheets[0].iter_rows(values_only=True)
    header = [str(name) if name is not None else "" for name in next(rows, ())]
    for number, cells in enumerate(rows, 2):
        if any(cell is not None for cell in cells):
            yield number, {name: _cell(value) for name, value in zip(header, cells, strict=False) if name}
    book.close()


def _cell(value: Any) -> Any:
    """A spreadsheet cell as text, the way it was typed; an empty one is an empty text."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    return value if isinstance(value, str) else str(value)


def _parquet(path: Path, _: list[str]) -> Iterator[Row]:
    import polars as pl

    for number, row in enumerate(pl.read_parquet(path).iter_rows(named=True), 1):
        yield number, _plain(row)


def _arrow(path: Path, _: list[str]) -> Iterator[Row]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            table = pa.ipc.open_stream(source).read_all()
        except pa.ArrowInvalid:
            table = pa.ipc.open_file(source).read_all()
        for number, row in enumerate(table.to_pylist(), 1):
            yield number, _plain(row)


def _arrow_folder(path: Path) -> list[Row]:
    """A Hugging Face `save_to_disk` folder: its Arrow files in order."""
    files = sorted(path.glob("**/*.arrow")) or sorted(path.glob("**/*.parquet"))
    if not files:
        raise FileUnreadable(path=path, reason="the folder holds no .arrow or .parquet files")
    rows = [row for file in files for _, row in (_arrow if file.suffix == ".arrow" else _parquet)(file, [])]
    return list(enumerate(rows, 1))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """NaN of a numeric column is a missing value."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


READERS: dict[str, Callable[[Path, list[str]], Iterator[Row]]] = {
    ".jsonl": _jsonl, ".ndjson": _jsonl, ".json": _json, ".csv": _separated(","), ".tsv": _separated("\t"), ".xlsx": _xlsx,
    ".parquet": _parquet, ".arrow": _arrow,
}  # fmt: skip
