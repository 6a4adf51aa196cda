"""Files in: any supported format as rows of text and lists, with the line each came from. Mapping is `schemas`' business.

Lossless: text stays text. "2007-06-29", "007", "NA" and "1e5" in a CSV or XLSX are what they look like.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, TextIO, cast

from eval_pipeline.errors import DatasetInvalid, FileUnreadable, UnknownName

Row = tuple[int, dict[str, Any]]
"""Line (or row) number from 1, and the fields."""

_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""How OOXML writes characters that XML cannot hold (ECMA-376 part 1, ST_Xstring)."""


_HUGGING_FACE = {".arrow", ".parquet", ".json", ".md", ".lock"}
"""What lies in the folder of a saved dataset."""


def read_rows(path: Path) -> list[Row]:
    """All rows of a file, by its suffix.

    Raises:
        FileUnreadable: it cannot be read, or its encoding is none of UTF-8, UTF-16 and cp949.
        UnknownName: its format is not known.
        DatasetInvalid: rows that cannot be read; all of them are named.
    """
    check_readable(path)
    return list(iterate(path))


def iterate(path: Path) -> Iterator[Row]:
    """The rows of a file one by one, JSONL, CSV and TSV without holding it in memory; what is wrong is raised at the end.

    Raises:
        DatasetInvalid: rows that cannot be read, after the last one; all of them are named.
    """
    if path.is_dir():
        yield from _arrow_folder(path)
        return
    problems: list[str] = []
    try:
        yield from READERS[_suffix(path)](path, problems)
    except (OSError, EOFError, zlib.error) as error:
        raise FileUnreadable(path=path, reason=getattr(error, "strerror", None) or str(error)) from error
    if problems:
        raise DatasetInvalid(
            path=path.name, count=len(problems), problems="\n".join(f"  {path.name}:{p}" for p in problems)
        )


def check_file(path: Path) -> None:
    """Whether there is such a file, and it is one file.

    Raises:
        FileUnreadable: there is none, or it is a folder.
        UnknownName: its format is not known.
    """
    check_readable(path)
    if path.is_dir():
        raise FileUnreadable(path=path, reason="a folder; name one file")


def check_readable(path: Path) -> None:
    """Whether there is such a file, of a known format.

    Raises:
        FileUnreadable: there is none.
        UnknownName: its format is not known.
    """
    if not path.exists():
        raise FileUnreadable(path=path, reason="no such file")
    if not path.is_dir() and _suffix(path) not in READERS:
        raise UnknownName(kind="file format", name=_suffix(path) or path.name, known=READERS)


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def _opened(path: Path, newline: str) -> TextIO:
    """The file as text, in the first encoding that all of it is in."""
    for encoding in _encodings(_head(path)):
        if _is_all(path, encoding):
            return cast("TextIO", io.TextIOWrapper(_binary(path), encoding=encoding, newline=newline))
    raise FileUnreadable(path=path, reason="its encoding is none of UTF-8, UTF-16 and cp949")


def _binary(path: Path) -> Any:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _head(path: Path) -> bytes:
    with _binary(path) as file:
        return file.read(2)


def _is_all(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with _binary(path) as file:
        try:
            while chunk := file.read(1 << 20):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def decode(path: Path) -> str:
    """The file's text, unpacked when it is gzip: UTF-8 with or without mark, UTF-16, else cp949.

    Raises:
        FileUnreadable: it is none of these.
    """
    with _opened(path, newline="") as file:
        return file.read()


def _encodings(raw: bytes) -> tuple[str, ...]:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    # Without a mark, UTF-16 shows by the zero half of its first, ASCII character.
    unmarked = {b"\x00": "utf-16-be"}.get(raw[:1]) or ("utf-16-le" if raw[1:2] == b"\x00" else None)
    return (unmarked,) if unmarked else ("utf-8-sig", "cp949")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field occurs twice in one object")
    return found


def loads(text: str) -> Any:
    """Strict JSON: NaN, Infinity, a field given twice and half a surrogate pair are errors, for none can be kept."""
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once)
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair is no character") from None
    return value


def _lines(path: Path) -> Iterator[str]:
    with _opened(path, newline="\n") as file:
        yield from file


def _jsonl(path: Path, problems: list[str]) -> Iterator[Row]:
    # Lines end at a line feed only: other separators may stand inside a JSON string.
    for number, line in enumerate(_lines(path), 1):
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
        file = _opened(path, newline="")
        reader = csv.reader(file, delimiter=separator, strict=True)
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
        finally:
            file.close()

    return read


def _xlsx(path: Path, problems: list[str]) -> Iterator[Row]:
    import zipfile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, SyntaxError) as error:
        problems.append(f"1: not a spreadsheet: {error}")
        return
    rows = book.worksheets[0].iter_rows(values_only=True)
    header = [_cell(name) for name in next(rows, ())]
    named = [name for name in header if name]
    if len(set(named)) < len(named):
        problems.append("1: a column name occurs twice")
    for number, cells in enumerate(rows, 2):
        if not any(cell is not None for cell in cells):
            continue
        if any(cell is not None for cell, name in zip(cells, header + [""] * len(cells), strict=False) if not name):
            problems.append(f"{number}: a cell under no column name")
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
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value) if isinstance(value, str) else str(value)


def _parquet(path: Path, problems: list[str]) -> Iterator[Row]:
    import polars as pl

    try:
        frame = pl.read_parquet(path, glob=False)
    except pl.exceptions.PolarsError as error:
        problems.append(f"1: not a Parquet file: {error}")
        return
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        yield number, _plain(row)


def _arrow(path: Path, problems: list[str]) -> Iterator[Row]:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:
        try:
            table = _arrow_table(pa, source)
        except pa.ArrowInvalid as error:
            problems.append(f"1: not an Arrow file: {error}")
            return
        for number, row in enumerate(table.to_pylist(), 1):
            yield number, _plain(row)


def _arrow_table(pa: Any, source: Any) -> Any:
    """Hugging Face writes streams, others write files."""
    try:
        return pa.ipc.open_stream(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_file(source).read_all()


def _arrow_folder(path: Path) -> list[Row]:
    """A Hugging Face `save_to_disk` folder: its Arrow files in order; with several splits each row says its own.

    A folder that holds anything else besides is none, and is not read by accident.
    """
    held = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith((".", "cache-"))]
    files = [file for file in held if file.suffix == ".arrow"] or [file for file in held if file.suffix == ".parquet"]
    others = [file for file in held if file.suffix not in _HUGGING_FACE]
    if others or not files:
        found = f"it holds {others[0].relative_to(path)}" if others else "it holds no .arrow or .parquet files"
        raise FileUnreadable(
            path=path, reason=f"a folder, and not a saved Hugging Face dataset: {found}; name one file"
        )
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    is_split = len({file.parent for file in files}) > 1
    for file in files:
        found = [row for _, row in (_arrow if file.suffix == ".arrow" else _parquet)(file, problems)]
        rows += [{"split": file.parent.name} | row for row in found] if is_split else found
    if problems:
        raise DatasetInvalid(path=path, count=len(problems), problems="\n".join(f"  {p}" for p in problems))
    return list(enumerate(rows, 1))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """NaN of a numeric column is a missing value; a date is its ISO text."""
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.isoformat() if isinstance(value, datetime | date | time) else value


READERS: dict[str, Callable[[Path, list[str]], Iterator[Row]]] = {
    ".jsonl": _jsonl, ".ndjson": _jsonl, ".json": _json, ".csv": _separated(","), ".tsv": _separated("\t"), ".xlsx": _xlsx,
    ".parquet": _parquet, ".arrow": _arrow,
}  # fmt: skip
