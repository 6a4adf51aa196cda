"""Columns of any file of pairs, by name, dotted path or JSONPath."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.errors import UnknownName
from eval_pipeline.intake.formats import check_file, read_rows


def columns(file: Path, paths: list[str]) -> list[list[Any]]:
    """The named columns of a file, one cell a row; null where a row has none.

    Raises:
        UsageError: the file cannot be read, or no row has anything at a path.
    """
    check_file(file)
    rows = [row for _, row in read_rows(file)]
    found = [[reach(row, path) for row in rows] for path in paths]
    for path, cells in zip(paths, found, strict=True):
        if all(cell is None for cell in cells):
            raise UnknownName(kind="column", name=path, known={name for row in rows[:200] for name in row})
    return found


def reach(row: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path (`judge_raw.0.score`) or a JSONPath that begins with `$`; null when there is none."""
    if path in row:
        return row[path]
    if path.startswith("$"):
        import jsonpath

        return next(iter(jsonpath.findall(path, dict(row))), None)
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
