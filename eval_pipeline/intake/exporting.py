"""A dataset version as a file for other tools; what is written here reads back as the same version."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.errors import NotWritable, UnknownName
from eval_pipeline.intake import datasets
from eval_pipeline.spreadsheets import inert

LONGEST_CELL = 32_767
"""Characters Excel holds in a cell."""
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def export(items: pl.DataFrame, target: Path) -> int:
    """Writes items to JSONL, JSON, CSV, TSV, Parquet or XLSX by the target's suffix; returns how many.

    CSV and TSV carry a last column `content_sha256`: it says that formula-like cells were made inert, and import undoes it.

    Raises:
        UnknownName: another suffix.
        NotWritable: the target cannot be written, or cannot hold a text.
    """
    rows = datasets.canonical(items)
    names = [name for name in datasets.ITEM_FIELDS if any(name in row for row in rows)]
    write = WRITERS.get(target.suffix.lower())
    if write is None:
        raise UnknownName(kind="file format", name=target.suffix, known=WRITERS)
    hashes = items.sort("item_id")["content_sha256"].to_list()
    try:
        target.write_bytes(write([row | {"content_sha256": sha} for row, sha in zip(rows, hashes, strict=True)], names))
    except OSError as error:
        raise NotWritable(path=target, reason=error.strerror or str(error)) from error
    except ValueError as error:
        raise NotWritable(path=target, reason=str(error)) from error
    return len(rows)


def _to_jsonl(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    return "".join(json.dumps(_only(row, names), ensure_ascii=False) + "\n" for row in rows).encode()


def _to_json(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    return json.dumps([_only(row, names) for row in rows], ensure_ascii=False, indent=1).encode()


def _only(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}


def _text(value: Any) -> str:
    """A cell: lists as JSON, absent as empty."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _to_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str], separator: str = ",") -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=separator)
    writer.writerow([*names, "content_sha256"])
    writer.writerows([*(inert(_text(row.get(name))) for name in names), row["content_sha256"]] for row in rows)
    return buffer.getvalue().encode()


def _to_tsv(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    return _to_csv(rows, names, "\t")


def _to_parquet(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    schema = {name: pl.List(pl.String) if name == "reference_contexts" else pl.String for name in names}
    buffer = io.BytesIO()
    pl.DataFrame([{name: row.get(name) for name in names} for row in rows], schema=schema).write_parquet(buffer)
    return buffer.getvalue()


def _to_xlsx(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    cells = [[cell_text(_text(row.get(name)), f"{row['item_id']}: {name}") for name in names] for row in rows]
    return workbook({"items": [list(names), *cells]})


def cell_text(text: str, place: str) -> str:
    """A text as a spreadsheet's XML holds it.

    Raises:
        ValueError: it is longer than a cell may be.
    """
    if len(text) > LONGEST_CELL:
        raise ValueError(
            f"{place} has {len(text)} characters and a spreadsheet cell holds {LONGEST_CELL}; use another format"
        )
    return _UNWRITABLE.sub(lambda found: f"_x{ord(found.group()):04X}_", text)


def workbook(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """A spreadsheet file whose cells all stay text, whatever they begin with; the first row of a sheet is its header."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            cells = [WriteOnlyCell(sheet, text) for text in row]
            for cell in cells:
                cell.data_type = "s"
            sheet.append(cells)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


WRITERS = {
    ".jsonl": _to_jsonl, ".json": _to_json, ".csv": _to_csv, ".tsv": _to_tsv, ".parquet": _to_parquet, ".xlsx": _to_xlsx,
}  # fmt: skip
