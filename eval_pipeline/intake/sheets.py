"""Blind label sheets: out to CSV, XLSX or one HTML page, and back in.

A sheet shows texts and asks for a score; it shows no judge, no system and no design. What a returned sheet says is
matched by hash with the tasks that were kept in `labels/sheets/<sheet>.jsonl`, so that no label attaches to another text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from eval_pipeline.errors import LabelsInvalid, NotWritable, UnknownName
from eval_pipeline.intake import label_page
from eval_pipeline.intake.datasets import read_lines, write_lines
from eval_pipeline.intake.exporting import LONGEST_CELL, cell_text, workbook
from eval_pipeline.intake.formats import check_file, decode, loads, read_rows
from eval_pipeline.intake.label_tasks import LabelTask, as_row, from_row, sheet_id
from eval_pipeline.intake.schemas import number_of
from eval_pipeline.metrics import declare
from eval_pipeline.metrics.declaration import Metric
from eval_pipeline.spreadsheets import bare, inert
from eval_pipeline.stages.versioning import slug
from eval_pipeline.vocabulary import Language, Provenance

ANSWERS = ("score", "note")
CUT = "\n[cut here: a cell holds no more; label this text on the HTML page]"


@dataclass(frozen=True, slots=True)
class Imported:
    """What a returned sheet holds.

    Attributes:
        rows: label rows, as lines of a labels file.
        blank_count: tasks without a score.
        problems: one line for every row that cannot be used: where, what.
    """

    rows: list[dict[str, Any]]
    blank_count: int
    problems: list[str]


def export_sheet(
    folder: Path, tasks: Sequence[LabelTask], metric: Metric, annotator: str, target: Path, language: Language
) -> str:
    """Writes one person's sheet by the target's suffix and keeps its tasks in the dataset's folder; returns the sheet's id.

    Args:
        folder: the dataset's.
        metric: declaration, for the scale and what it asks.
        language: of the page and the guide.

    Raises:
        UnknownName: a suffix other than .csv, .xlsx or .html.
        NotWritable: the target cannot be written.
    """
    sheet = sheet_id(tasks, annotator)
    writers = {".csv": _csv, ".xlsx": _xlsx, ".html": _html}
    write = writers.get(target.suffix.lower())
    if write is None:
        raise UnknownName(kind="sheet format", name=target.suffix, known=writers)
    content = write(sheet, tasks, metric, annotator, language)
    try:
        target.write_bytes(content)
    except OSError as error:
        raise NotWritable(path=target, reason=error.strerror or str(error)) from error
    write_lines(_kept(folder, sheet), map(as_row, tasks))
    return sheet


def _kept(folder: Path, sheet: str) -> Path:
    return folder / "labels" / "sheets" / f"{slug(sheet)}.jsonl"


def shown(value: Any) -> str:
    """A judged field as people read it: passages numbered, one after the other."""
    if isinstance(value, list | tuple):
        return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(value, 1))
    return str(value)


def _cell(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= LONGEST_CELL - 1_000 else text[: LONGEST_CELL - 1_000] + CUT


def _table(sheet: str, tasks: Sequence[LabelTask]) -> list[list[str]]:
    fields = list(tasks[0].texts) if tasks else []
    rows = [
        [sheet, task.item_id, *(_cell(task.texts[name]) for name in fields), "", "", task.content_sha256]
        for task in tasks
    ]
    return [["sheet", "item_id", *fields, *ANSWERS, "content_sha256"], *rows]


def _csv(sheet: str, tasks: Sequence[LabelTask], *_: object) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([inert(cell) for cell in row] for row in _table(sheet, tasks))
    # Excel takes a CSV for the system's code page unless it begins with the mark.
    return buffer.getvalue().encode("utf-8-sig")


def _xlsx(sheet: str, tasks: Sequence[LabelTask], metric: Metric, annotator: str, language: Language) -> bytes:
    rows = [[cell_text(cell, sheet) for cell in row] for row in _table(sheet, tasks)]
    guide = [[line] for line in (metric.summary[language], label_page.scale_text(metric, language), annotator)]
    return workbook({"labels": rows, "guide": guide})


def _html(sheet: str, tasks: Sequence[LabelTask], metric: Metric, annotator: str, language: Language) -> bytes:
    shown_tasks = [
        {"item_id": t.item_id, "content_sha256": t.content_sha256, "texts": {k: shown(v) for k, v in t.texts.items()}}
        for t in tasks
    ]
    return label_page.page(sheet, shown_tasks, metric, annotator, language).encode()


def import_sheet(
    folder: Path, file: Path, annotator: str, now: datetime, metrics: Mapping[str, Metric] | None = None
) -> Imported:
    """Reads a returned sheet and checks each row; writes nothing.

    Rows may be reordered, columns added, scores written as "4.0". A row whose texts are not those that were handed out,
    or whose score is off the metric's scale, is a problem; a row without a score is blank.

    Args:
        metrics: declarations by instance name; the package's own by default.

    Raises:
        LabelsInvalid: the file is no sheet of this dataset.
    """
    rows = [(number, row) for number, row in _rows(file)]
    names = {str(row.get("sheet") or "") for _, row in rows} - {""}
    kept = {sheet: _tasks(folder, sheet) for sheet in sorted(names)}
    if not any(kept.values()):
        problem = f"no sheet of this dataset ({', '.join(sorted(names)) or 'no column `sheet`'})"
        raise LabelsInvalid(path=file.name, count=len(rows), problems=f"  {problem}")
    found: dict[str, dict[str, Any]] = {}
    spoiled: set[str] = set()
    problems: list[str] = []
    blank_count = 0
    for number, row in rows:
        if row.get("score") is None or not str(row["score"]).strip():
            blank_count += 1
            continue
        try:
            task = _task(row, kept)
            label = _label(row, task, (metrics or {}).get(task.metric) or declare(task.metric), annotator, now)
        except ValueError as error:
            problems.append(f"  {file.name}:{number}: {row.get('item_id') or '-'}: {error}")
            continue
        before = found.setdefault(task.content_sha256, label)
        if before["score"] != label["score"]:
            spoiled.add(task.content_sha256)
            problems.append(
                f"  {file.name}:{number}: {task.item_id}: two scores for one text, {before['score']:g} and {label['score']:g}"
            )
    return Imported([label for sha, label in found.items() if sha not in spoiled], blank_count, problems)


def _rows(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """A page's JSON export holds `sheet` once, a table in every row."""
    if file.suffix.lower() == ".json" and file.is_file():
        try:
            whole = loads(decode(file))
        except ValueError as error:
            raise LabelsInvalid(path=file.name, count=1, problems=f"  not JSON: {error}") from error
        if not isinstance(whole, dict) or not isinstance(whole.get("labels"), list):
            return []
        return [
            (number, {"sheet": whole.get("sheet"), **row})
            for number, row in enumerate(whole["labels"], 1)
            if isinstance(row, dict)
        ]
    check_file(file)
    return read_rows(file)


def _tasks(folder: Path, sheet: str) -> dict[str, LabelTask]:
    path = _kept(folder, sheet)
    return (
        {task.content_sha256: task for _, row in read_lines(path) for task in [from_row(row)]} if path.exists() else {}
    )


def _task(row: Mapping[str, Any], kept: Mapping[str, Mapping[str, LabelTask]]) -> LabelTask:
    """The task a row is about, with the texts as they were handed out.

    Raises:
        ValueError: there is none, or the row shows other texts.
    """
    task = kept.get(str(row.get("sheet") or ""), {}).get(str(row.get("content_sha256") or "").strip())
    if task is None:
        raise ValueError("its content_sha256 is of no text that was handed out in this sheet")
    if any(name in row and CUT in _cell(value) for name, value in task.texts.items()):
        raise ValueError("the sheet shows its text only in part; label it on the HTML page")
    changed = [name for name in task.texts if name in row and not _is_same(row[name], task.texts[name])]
    if changed:
        raise ValueError(f"the text of {', '.join(changed)} was changed")
    return task


def _is_same(cell: Any, value: Any) -> bool:
    """Whether a cell still shows a value: made inert or not, and whatever a spreadsheet does to ends of lines."""
    text, handed_out = _plain(str(cell or "")), _cell(value)
    return text in {_plain(handed_out), _plain(inert(handed_out))}


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip()


def _label(row: Mapping[str, Any], task: LabelTask, metric: Metric, annotator: str, now: datetime) -> dict[str, Any]:
    score = number_of(row["score"].strip() if isinstance(row["score"], str) else row["score"])
    scale = metric.label_scale
    if score not in scale if scale else not 0 <= score <= 1:
        allowed = ", ".join(map(str, scale)) if scale else "a share from 0 to 1"
        raise ValueError(f"score {score:g} is not one of the scale: {allowed}")
    value = (score - scale[0]) / (scale[-1] - scale[0]) if scale else score
    return {
        "item_id": task.item_id, "metric": task.metric, "score": score, "value": value, "annotator": annotator,
        "provenance": Provenance.HUMAN.value, "labelled_at": row.get("labelled_at") or now.isoformat(),
        "inclusion_probability": task.inclusion_probability, "stratum": task.stratum, "cluster_id": task.cluster_id,
        "note": bare(str(row.get("note") or "").strip()) or None, "content_sha256": task.content_sha256, "texts": task.texts,
    }  # fmt: skip
