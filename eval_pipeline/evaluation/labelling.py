"""Human labels of a project: sheets out of an evaluation, returned sheets in, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.errors import LabelsInvalid, TargetExists, UnknownName
from eval_pipeline.evaluation.project import Project
from eval_pipeline.intake import datasets, label_files, label_status, label_tasks, sheets
from eval_pipeline.intake.label_tasks import LabelTask
from eval_pipeline.metrics.declaration import Metric
from eval_pipeline.stages.calibration import ADJUDICATED
from eval_pipeline.stages.versioning import slug
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.tables import EVALUATIONS, GOLDEN_ITEMS, RESPONSES, SCORES
from eval_pipeline.vocabulary import Language, Provenance


def export(project: Project, evaluation_id: str, metric: str, n: int, annotators: Sequence[str], overlap: int, out: Path,
           seed: int, language: Language, force: bool = False, again: bool = False) -> dict[str, Any]:  # fmt: skip
    """Draws texts of one evaluation by its judge's scores and writes a blind sheet for each annotator.

    Texts that a person labelled already are not drawn, or with `again` only they are: a second look shows label drift.
    With several annotators the name goes into each file's name.

    Returns:
        dataset, metric, offered_count, task_count, files (path by annotator), arithmetic (a sum to print).

    Raises:
        UnknownName: no such metric or one whose texts no sheet can show, no usable name of an annotator, or no such format.
        LabelsInvalid: the metric scored other texts than it would now.
        TargetExists: a sheet is there already, and `force` does not say to replace it.
        NotWritable: a sheet cannot be written.
    """
    warehouse = Warehouse(project.warehouse)
    declared = project.metrics((metric,))[metric]
    row = warehouse.read(EVALUATIONS, evaluation_id).row(0, named=True)
    dataset = row["dataset"]
    items = warehouse.read(GOLDEN_ITEMS, dataset).filter(pl.col("dataset_version") == row["dataset_version"])
    folder, responses = project.dataset_folder(dataset), warehouse.read(RESPONSES, evaluation_id)
    shown = {*items.columns, *responses.columns}
    if not shown.issuperset(declared.needs):
        possible = [name for name, one in project.metrics().items() if shown.issuperset(one.needs)]
        raise UnknownName(kind="metric for label sheets", name=metric, known=possible)
    try:
        offered = label_tasks.candidates(metric, declared, items, responses, warehouse.read(SCORES, evaluation_id))
    except ValueError as error:
        raise LabelsInvalid(path=evaluation_id, count=1, problems=f"  {error}; run the evaluation again") from error
    done = _labelled(folder, dataset, metric)
    offered = [one for one in offered if (one[0].content_sha256 in done) == again]
    tasks = label_tasks.draw(offered, n, seed)
    files = _write(folder, label_tasks.assign(tasks, annotators, overlap), declared, out, language, force)
    return {
        "dataset": dataset, "metric": metric, "offered_count": len(offered), "task_count": len(tasks), "files": files,
        "arithmetic": label_tasks.arithmetic(len(tasks), len(annotators), overlap, language),
    }  # fmt: skip


def _labelled(folder: Path, dataset: str, metric: str) -> set[str]:
    labels = datasets.labels(folder, dataset)
    human = labels.filter((pl.col("metric") == metric) & (pl.col("provenance") == Provenance.HUMAN))
    return set(human["content_sha256"])


def _write(folder: Path, handed_out: dict[str, list[LabelTask]], declared: Metric, out: Path, language: Language,
           force: bool) -> dict[str, str]:  # fmt: skip
    """A sheet for everyone who has tasks; names and targets are checked before the first is written."""
    targets: dict[str, Path] = {}
    for annotator, tasks in handed_out.items():
        if slug(annotator, 64) != annotator:
            raise UnknownName(
                kind="annotator name (letters, digits, Hangul, `.` and `_`)",
                name=annotator,
                known=[slug(annotator, 64)],
            )
        target = out if len(handed_out) == 1 else out.with_name(f"{out.stem}-{annotator}{out.suffix}")
        targets |= {annotator: target} if tasks else {}
    for target in targets.values():
        if target.exists() and not force:
            raise TargetExists(path=target)
    for annotator, target in targets.items():
        sheets.export_sheet(folder, handed_out[annotator], declared, annotator, target, language)
    return {annotator: str(target) for annotator, target in targets.items()}


def export_adjudication(project: Project, dataset: str, metric: str, out: Path, language: Language,
                        force: bool = False) -> dict[str, Any]:  # fmt: skip
    """A sheet of the texts that people labelled differently; import it as annotator `adjudicated` and it settles them."""
    folder = project.dataset_folder(dataset)
    declared = project.metrics((metric,))[metric]
    human = datasets.labels(folder, dataset).filter(pl.col("provenance") == Provenance.HUMAN)
    tasks = label_tasks.disagreements(human, metric, ADJUDICATED)
    files = _write(folder, {ADJUDICATED: tasks}, declared, out, language, force)
    return {"dataset": dataset, "metric": metric, "task_count": len(tasks), "files": files}


def import_labels(project: Project, dataset: str, file: Path, annotator: str, now: datetime) -> dict[str, Any]:
    """Brings a returned sheet in: what is right is saved, what is not is listed.

    Returns:
        label_count, replaced_count (labels of this person that now say something else), blank_count,
        problems (one line each), path (null when nothing was right).

    Raises:
        LabelsInvalid: the file is no sheet of this dataset.
    """
    folder = project.dataset_folder(dataset)
    found = sheets.import_sheet(folder, file, annotator, now, project.metrics())
    path, replaced_count = label_files.save(folder, found, annotator) if found.rows else (None, 0)
    return {
        "label_count": len(found.rows),
        "replaced_count": replaced_count,
        "blank_count": found.blank_count,
        "problems": found.problems,
        "path": None if path is None else str(path),
    }


def status(project: Project, dataset: str) -> list[dict[str, Any]]:
    """One row per metric; the keys are those of `label_status.status`."""
    folder = project.dataset_folder(dataset)
    return label_status.status(datasets.labels(folder, dataset), folder)
