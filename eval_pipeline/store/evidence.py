"""Small files in git from which a fresh clone can decide: pinned baselines and decisions on judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from eval_pipeline.errors import NotWritable
from eval_pipeline.tables import SCORES

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
    return folder / "baselines" / f"{quote(label, safe='').replace('.', '%2E')}.jsonl"


def write_baseline(folder: Path, label: str, scores: pl.DataFrame) -> Path:
    """Pins the scores of one evaluation, one row a line in stable order; returns the file."""
    path = baseline_path(folder, label)
    rows = scores.select(BASELINE_COLUMNS).sort("metric", "item_id").iter_rows(named=True)
    _write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def read_baseline(folder: Path, label: str) -> pl.DataFrame | None:
    """The pinned scores, or null when nothing is pinned under this label."""
    path = baseline_path(folder, label)
    if not path.exists():
        return None
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return pl.DataFrame(rows, schema={name: SCORES.schema[name] for name in BASELINE_COLUMNS})


def judge_decisions(folder: Path) -> list[dict[str, Any]]:
    """Decisions on judges, oldest first."""
    path = folder / "judges.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] if path.exists() else []


def accept_judge(folder: Path, decision: Mapping[str, Any]) -> None:
    """Adds one decision; it holds at least `judge_key`, `metric`, `judge`, `message`, `decided_at`."""
    lines = [json.dumps(row, ensure_ascii=False) for row in (*judge_decisions(folder), decision)]
    _write(folder / "judges.jsonl", "\n".join(lines) + "\n")


def accepted_judges(folder: Path) -> set[str]:
    """Judge keys that a decision accepted."""
    return {row["judge_key"] for row in judge_decisions(folder)}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise NotWritable(path=path, reason=error.strerror or str(error)) from error
