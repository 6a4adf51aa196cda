"""Imported labels into the files of a dataset's folder, one file a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.errors import UnknownName
from eval_pipeline.intake.datasets import read_lines, write_lines
from eval_pipeline.intake.sheets import Imported
from eval_pipeline.stages.versioning import slug


def save(folder: Path, imported: Imported, annotator: str) -> tuple[Path, int]:
    """Adds labels to `labels/<annotator>.jsonl`; a new label of the same text and metric replaces the person's old one.

    An old one of another day is kept in `labels/replaced/`: it is a second look, not a correction.

    Returns:
        The file, and how many of its labels now give another score.

    Raises:
        UnknownName: the annotator's name is not one a file may have.
    """
    if slug(annotator, 64) != annotator:
        raise UnknownName(
            kind="annotator name (letters, digits, Hangul, `.` and `_`)", name=annotator, known=[slug(annotator, 64)]
        )
    path = folder / "labels" / f"{annotator}.jsonl"
    before = _by_text(row for _, row in read_lines(path)) if path.exists() else {}
    new = _by_text(imported.rows)
    replaced = [before[key] for key, row in new.items() if key in before and _day(before[key]) != _day(row)]
    if replaced:
        past = folder / "labels" / "replaced" / path.name
        write_lines(past, [*(row for _, row in (read_lines(past) if past.exists() else ())), *replaced])
    write_lines(path, (before | new).values())
    return path, sum(key in before and before[key]["score"] != row["score"] for key, row in new.items())


def _by_text(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["metric"], row["content_sha256"], row["annotator"]): row for row in rows}


def _day(row: Mapping[str, Any]) -> str:
    return str(row.get("labelled_at"))[:10]
