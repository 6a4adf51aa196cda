"""What people read of the finished evaluations: the published database and the report."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from eval_pipeline.errors import EvaluationNotFound, UsageError
from eval_pipeline.evaluation.evidence import complete
from eval_pipeline.evaluation.project import Project
from eval_pipeline.store.publish import publish as publish_database
from eval_pipeline.store.warehouse import Warehouse
from eval_pipeline.vocabulary import Language

if TYPE_CHECKING:
    from eval_pipeline.report.view import EvaluationView


def publish(project: Project) -> Path:
    """Rebuilds `results.duckdb` from the Parquet tables; returns its path."""
    return publish_database(Warehouse(project.warehouse), project.local)


def report_path(project: Project, evaluation_id: str) -> Path:
    """Where the report of an evaluation is."""
    return project.local / "reports" / f"{evaluation_id}.html"


def write_report(project: Project, evaluation_id: str | None = None, out: Path | None = None,
                 language: Language | None = None, baseline: str | None = None) -> Path:  # fmt: skip
    """Writes the report of one evaluation, the newest when none is named.

    Args:
        baseline: the evaluation to compare with; null takes the one before.

    Raises:
        EvaluationNotFound: there is no such complete evaluation, or no such baseline.
    """
    from eval_pipeline.report.page import render
    from eval_pipeline.report.view import view

    warehouse = Warehouse(project.warehouse)
    known = complete(warehouse)["evaluation_id"].to_list()
    chosen = evaluation_id or (known[-1] if known else None)
    if chosen not in known:
        raise EvaluationNotFound(selector=evaluation_id or "latest")
    path = out or report_path(project, str(chosen))
    path.parent.mkdir(parents=True, exist_ok=True)
    seen = _with_rot(project, view(warehouse.read, str(chosen), baseline))
    text = render(seen, language or project.config.language)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return path


def write_charts(
    project: Project, evaluation_id: str, format_: str, out: Path | None, language: Language
) -> list[Path]:
    """Every chart of one evaluation as an SVG or PNG file in a folder; next to the reports unless `out` names one."""
    from eval_pipeline.report import plots
    from eval_pipeline.report.view import view

    seen = view(Warehouse(project.warehouse).read, evaluation_id)
    folder = out or report_path(project, evaluation_id).with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in plots.plots(seen, language):
        path = folder / f"{name.replace('/', '-')}.{format_}"
        path.write_bytes(
            plots.chart_png(seen, name, language)
            if format_ == "png"
            else plots.chart_svg(seen, name, language).encode()
        )
        written.append(path)
    return written


def log_to_mlflow(project: Project, evaluation_id: str, target: str, language: Language) -> str:
    """Writes one evaluation, its report and its scores to MLflow; returns the run's id.

    Raises:
        ExtraMissing: mlflow is not installed.
        NotWritable: MLflow cannot write there.
    """
    from eval_pipeline.report import mlflow_export
    from eval_pipeline.report.view import view

    seen = view(Warehouse(project.warehouse).read, evaluation_id)
    with TemporaryDirectory() as folder:
        page = write_report(project, evaluation_id, Path(folder) / "report.html", language)
        scores = Path(folder) / "scores.parquet"
        seen.scores.write_parquet(scores)
        return mlflow_export.log(seen, (page, scores), target)


def _with_rot(project: Project, seen: EvaluationView) -> EvaluationView:
    """The view with what `dataset check` finds now in its dataset version, and the scores without those rows."""
    from eval_pipeline.evaluation import dataset_check
    from eval_pipeline.quality.rot import rotten_ids, score_without

    row = seen.evaluation
    try:
        folder = project.dataset_folder(row["dataset"])
        found = dataset_check.check(project, row["dataset"], folder, row["dataset_tag"], datetime.now(UTC).date())
    except UsageError:  # the dataset or its version is no longer in the project
        return seen
    return replace(
        seen, findings=[asdict(one) for one in found], without_rotten=score_without(seen.scores, rotten_ids(found))
    )
