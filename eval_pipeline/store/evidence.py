"""Small files in git from which a fresh clone can decide: pinned baselines, calibrations, decisions on judges.

One row a line in stable order, so that a diff shows what changed. What the rows decide belongs to the gate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.errors import FileUnreadable, NotWritable
from eval_pipeline.store.warehouse import conform, folder_name
from eval_pipeline.tables import CALIBRATIONS, SCORES

BASELINE_COLUMNS = (
    "evaluation_id",
    "metric",
    "item_id",
    "item_sha256",
    "judge_key",
    "status",
    "value",
    "lower",
    "upper",
)


def baseline_path(folder: Path, label: str) -> Path:
    """File of a pinned baseline; the label is quoted, so it cannot leave the folder."""
    return folder / "baselines" / f"{folder_name(label)}.jsonl"


def write_baseline(folder: Path, label: str, scores: pl.DataFrame) -> Path:
    """Pins the scores of one evaluation, one row a line in stable order; returns the file.

    Raises:
        NotWritable: the folder cannot be written.
    """
    path = baseline_path(folder, label)
    _write(path, scores.select(BASELINE_COLUMNS).sort("metric", "item_id").iter_rows(named=True))
    return path


def read_baseline(folder: Path, label: str) -> pl.DataFrame | None:
    """The pinned scores, or null when nothing is pinned under this label.

    Raises:
        FileUnreadable: a line is damaged.
    """
    path = baseline_path(folder, label)
    if not path.exists():
        return None
    return _frame(path, {name: SCORES.schema[name] for name in BASELINE_COLUMNS}, _read(path))


def judge_decisions(folder: Path) -> list[dict[str, Any]]:
    """Decisions on judges, oldest first.

    Raises:
        FileUnreadable: a line is damaged.
    """
    return _read(folder / "judges.jsonl")


def accept_judge(folder: Path, decision: Mapping[str, Any]) -> None:
    """Adds one decision; it holds at least `judge_key`, `metric`, `judge`, `message`, `decided_at`. None is ever removed.

    Raises:
        NotWritable: the folder cannot be written.
    """
    _write(folder / "judges.jsonl", (*judge_decisions(folder), decision))


def accepted_judges(folder: Path) -> set[str]:
    """Judge keys that a decision accepted."""
    return {row["judge_key"] for row in judge_decisions(folder)}


def add_calibrations(folder: Path, calibrations: pl.DataFrame) -> Path:
    """Adds `calibrations` rows whose key is not on record yet, oldest first. Returns the file, untouched when none is new.

    The first row of a key stays: a nightly run that calibrates the same judge on the same labels changes nothing in git.

    Raises:
        NotWritable: the folder cannot be written.
    """
    path, kept = folder / "calibrations.jsonl", read_calibrations(folder)
    new = conform(CALIBRATIONS, calibrations).join(kept, on=list(CALIBRATIONS.key), how="anti")
    if new.height:
        key = ("calibrated_at", *CALIBRATIONS.key)
        both = pl.concat([kept, new]).sort(key).unique(CALIBRATIONS.key, keep="first", maintain_order=True)
        _write(path, both.iter_rows(named=True))
    return path


def read_calibrations(folder: Path) -> pl.DataFrame:
    """`calibrations` rows kept in git, oldest first; none when there is no file.

    Raises:
        FileUnreadable: a line is damaged.
    """
    path = folder / "calibrations.jsonl"
    rows = _read(path)
    for row in rows:
        row["calibrated_at"] = datetime.fromisoformat(row["calibrated_at"])
    return _frame(path, CALIBRATIONS.schema, rows)


def _frame(path: Path, schema: Mapping[str, pl.DataType], rows: list[dict[str, Any]]) -> pl.DataFrame:
    try:
        return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema, orient="row")
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise FileUnreadable(path=path, reason=str(error).splitlines()[0]) from error


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        # Split at line feeds only: a text may hold U+2028 and its like, which `splitlines` takes for line ends.
        lines = path.read_bytes().decode().split("\n")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise FileUnreadable(path=path, reason=str(error)) from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise FileUnreadable(path=path, reason=f"line {number} is not JSON ({error})") from error
        if row is not None and not isinstance(row, dict):
            raise FileUnreadable(path=path, reason=f"line {number} is not a JSON object")
        rows += [] if row is None else [row]
    return rows


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes all rows in one step; times in ISO form, texts literally."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False, default=datetime.isoformat) for row in rows]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes("".join(f"{line}\n" for line in lines).encode())
        temporary.replace(path)
    except OSError as error:
        raise NotWritable(path=path, reason=error.strerror or str(error)) from error
