"""From a file to a new dataset version, its recorded responses and its human labels: all of it, or nothing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.errors import DatasetInvalid, MessageRequired, NotWritable, UnknownName
from eval_pipeline.intake import datasets
from eval_pipeline.intake.formats import read_rows
from eval_pipeline.intake.schemas import map_rows
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.texts import content_sha256
from eval_pipeline.stages import versioning
from eval_pipeline.stages.versioning import slug


def folder_of(root: Path, name: str) -> Path:
    """Folder of a dataset by name; a name that could leave `datasets/` is refused.

    Raises:
        UnknownName: the name is not one a folder may have.
    """
    if slug(name, 64) != name:
        raise UnknownName(kind="dataset name (letters, digits, Hangul, `.` and `_`)", name=name, known=[slug(name, 64)])
    return root / "datasets" / name


def parse_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """`ours=theirs` pairs as our field by theirs.

    Raises:
        DatasetInvalid: a pair without `=`.
    """
    found = {}
    for pair in pairs:
        ours, separator, theirs = pair.partition("=")
        if not separator or not theirs:
            raise DatasetInvalid(path="--map", count=1, problems=f"  {pair!r} is not OURS=THEIRS")
        found[theirs] = ours
    return found


def add(folder: Path, file: Path, tag: str, message: str, author: str | None, now: datetime, mapping: Mapping[str, str],
        contexts_as: str | None = None, metric: str | None = None) -> dict[str, Any]:  # fmt: skip
    """Imports a file as the newest version of a dataset.

    A response column becomes `responses/<file name>.jsonl`, a human-score column `labels/<tag>.jsonl`.

    Raises:
        UsageError: nothing was written, and why.
    """
    if not message.strip():
        raise MessageRequired()
    mapped = map_rows(file.name, read_rows(file), mapping, contexts_as)
    items = [{name: row.get(name) for name in datasets.ITEM_FIELDS} for row in mapped.rows]
    answered = [row for row in mapped.rows if isinstance(row.get("response"), str)]
    labels = _labels(mapped.rows, metric, file.stem, now)
    entry = datasets.add_version(folder, items, tag, message, author, now)
    response_file = folder / "responses" / f"{slug(file.stem)}.jsonl"
    if answered:
        datasets.write_lines(response_file, [
            {"item_id": row["item_id"], "response": versioning.nfc(row["response"]),
             "retrieved_contexts": versioning.nfc(row.get("retrieved_contexts")), "latency_seconds": None, "error": None}
            for row in answered
        ])  # fmt: skip
    if labels:
        datasets.write_lines(folder / "labels" / f"{slug(tag)}.jsonl", labels)
    return {
        "dataset_version": entry["dataset_version"], "item_count": entry["item_count"], "tool": mapped.tool,
        "names": dict(mapped.names), "response_count": len(answered),
        "response_file": str(Path("datasets") / folder.name / "responses" / response_file.name) if answered else None,
        "label_count": len(labels), "label_metric": labels[0]["metric"] if labels else None, "tag": tag,
    }  # fmt: skip


def _labels(rows: Sequence[Mapping[str, Any]], metric: str | None, stem: str, now: datetime) -> list[dict[str, Any]]:
    """Label rows of the file's human scores, which are shares in [0, 1] or grades of the metric's label scale."""
    found, problems = [], []
    for number, row in enumerate(rows, 1):
        if row.get("human_score") is None:
            continue
        name = metric or row.get("metric")
        if not name:
            problems.append(f"  row {number}: a human score without its metric; add --metric NAME")
            continue
        texts = _texts(row, name)
        value = float(row["human_score"])
        if texts is None:
            continue
        if not 0 <= value <= 1:
            scale = declare(name).label_scale
            if scale is None or value not in scale:
                problems.append(f"  row {number}: human_score {value:g} is neither in [0, 1] nor a grade of {name}")
                continue
            value = (value - scale[0]) / (scale[-1] - scale[0])
        found.append({
            "item_id": row["item_id"], "metric": name, "score": row["human_score"], "value": value,
            "annotator": row.get("annotator") or stem, "provenance": "human", "labelled_at": now.isoformat(),
            "stratum": row.get("stratum"), "cluster_id": row.get("cluster_id"), "content_sha256": content_sha256(texts), "texts": texts,
        })  # fmt: skip
    if problems:
        raise DatasetInvalid(path="human scores", count=len(problems), problems="\n".join(problems[:50]))
    return found


def _texts(row: Mapping[str, Any], metric: str) -> dict[str, Any] | None:
    """The fields the metric needs, or null when the row lacks one: such a label attaches to nothing."""
    texts = {name: versioning.nfc(row.get(name)) for name in declare(metric).needs}
    return None if any(value is None for value in texts.values()) else texts


def yaml_snippet(folder: Path, root: Path, done: Mapping[str, Any]) -> str:
    """What to add to evaluation.yaml for a new dataset."""
    lines = ["datasets:", f"  {folder.name}: {{path: {folder.relative_to(root)}, tag: latest}}"]
    if done["response_file"]:
        lines += [
            "systems:",
            f"  {folder.name}_recorded: {{source: recorded, path: {done['response_file']}, release: {done['tag']}}}",
        ]
    return "\n".join(lines)


def export(items: pl.DataFrame, target: Path) -> int:
    """Writes items to JSONL, JSON, CSV, Parquet or XLSX by the target's suffix; returns how many.

    Raises:
        UnknownName: another suffix.
        NotWritable: the target cannot be written.
    """
    rows = datasets.canonical(items)
    names = [name for name in datasets.ITEM_FIELDS if any(name in row for row in rows)]
    writers = {".jsonl": _to_jsonl, ".json": _to_json, ".csv": _to_csv, ".parquet": _to_parquet, ".xlsx": _to_xlsx}
    if target.suffix.lower() not in writers:
        raise UnknownName(kind="file format", name=target.suffix, known=writers)
    try:
        target.write_bytes(writers[target.suffix.lower()](rows, names))
    except OSError as error:
        raise NotWritable(path=target, reason=error.strerror or str(error)) from error
    return len(rows)


def _to_jsonl(rows: Sequence[Mapping[str, Any]], _: Sequence[str]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _to_json(rows: Sequence[Mapping[str, Any]], _: Sequence[str]) -> bytes:
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()


def _text(value: Any) -> str:
    """A cell: lists as JSON, absent as empty."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _to_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(names)
    writer.writerows([_text(row.get(name)) for name in names] for row in rows)
    return buffer.getvalue().encode()


def _to_parquet(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    schema = {name: pl.List(pl.String) if name == "reference_contexts" else pl.String for name in names}
    buffer = io.BytesIO()
    pl.DataFrame([{name: row.get(name) for name in names} for row in rows], schema=schema).write_parquet(buffer)
    return buffer.getvalue()


def _to_xlsx(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("items")
    sheet.append(list(names))
    for row in rows:
        sheet.append([_text(row.get(name)) for name in names])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()
