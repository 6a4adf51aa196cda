"""What the `label` verbs print."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval_pipeline.cli.console import LANGUAGE, emit, out, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.evaluation import labelling, reading
from eval_pipeline.evaluation.project import Project


def export(project: Project, selector: str, metric: str, n: int, annotators: list[str], overlap: int, target: Path,
           seed: int, force: bool, again: bool, as_json: bool) -> None:  # fmt: skip
    """Sheets of one evaluation's texts."""
    project.metrics((metric,))
    evaluation_id = reading.newest(project) if selector == "latest" else reading.select(project, selector)
    done = labelling.export(
        project, evaluation_id, metric, n, annotators, overlap, target, seed, LANGUAGE, force, again
    )
    if as_json:
        emit(done)
        return
    if not done["task_count"]:
        say(t(f"Nothing to label: {metric} scored no text in {evaluation_id} that people have {'' if again else 'not '}labelled.",
              f"라벨링할 것이 없습니다. {evaluation_id}에서 {metric}이(가) 채점한 텍스트 중 사람 라벨이 {'있는' if again else '없는'} 것이 없습니다."))  # fmt: skip
        return
    say(t(f"{metric}: drew {done['task_count']} of {done['offered_count']} texts; {done['arithmetic']}",
          f"{metric}: 텍스트 {done['offered_count']}개 중 {done['task_count']}개 추출; {done['arithmetic']}"))  # fmt: skip
    _print_files(done["files"])


def _print_files(files: dict[str, str]) -> None:
    for annotator, path in files.items():
        say(f"{annotator} -> {path}")
    for annotator in files:
        say(t(f"When it is filled: eval-pipeline label import FILE --annotator {annotator}",
              f"다 채운 뒤: eval-pipeline label import FILE --annotator {annotator}"))  # fmt: skip


def export_adjudication(
    project: Project, dataset: str | None, metric: str, target: Path, force: bool, as_json: bool
) -> None:
    """A sheet of what people see differently."""
    name = project.config.dataset_name(dataset)
    done = labelling.export_adjudication(project, name, metric, target, LANGUAGE, force)
    if as_json:
        emit(done)
    elif not done["task_count"]:
        say(t(f"{metric}: people agree, nothing to settle.", f"{metric}: 의견이 갈린 텍스트가 없습니다."))
    else:
        say(
            t(
                f"{metric}: {done['task_count']} texts to settle",
                f"{metric}: 최종 판정이 필요한 텍스트 {done['task_count']}개",
            )
        )
        _print_files(done["files"])


def import_(project: Project, dataset: str | None, file: Path, annotator: str, as_json: bool) -> int:
    """Brings a sheet in; 1 when some of its rows cannot be used."""
    name = project.config.dataset_name(dataset)
    done = labelling.import_labels(project, name, file, annotator, datetime.now(UTC))
    if as_json:
        emit(done)
    else:
        _print_imported(done, annotator)
    return 1 if done["problems"] else 0


def _print_imported(done: dict[str, Any], annotator: str) -> None:
    replaced, blank = done["replaced_count"], done["blank_count"]
    say(t(f"{done['label_count']} labels by {annotator} imported, {replaced} of them replace another score; {blank} rows without a score",
          f"{annotator}의 라벨 {done['label_count']}개를 가져왔고 그중 {replaced}개는 이전 점수를 바꿉니다. 점수 없는 행 {blank}개"))  # fmt: skip
    if done["problems"]:
        say(t(f"{len(done['problems'])} rows cannot be used:", f"쓸 수 없는 행 {len(done['problems'])}개:"))
    for problem in done["problems"]:
        say(problem)
    if done["path"]:
        say(t(f"Commit {done['path']}; `eval-pipeline calibrate` holds the judge against the labels.",
              f"{done['path']}을(를) 커밋하세요. `eval-pipeline calibrate`로 심판을 라벨과 비교합니다."))  # fmt: skip


def status(project: Project, dataset: str | None, as_json: bool) -> None:
    """One line a metric."""
    rows = labelling.status(project, project.config.dataset_name(dataset))
    if as_json:
        emit(rows)
    elif not rows:
        say(
            t(
                "No labels and no sheets yet: eval-pipeline label export",
                "라벨도 시트도 아직 없습니다: eval-pipeline label export",
            )
        )
    else:
        shown = [row | {"annotators": ", ".join(row["annotators"])} for row in rows]
        out().print(table(list(shown[0]), [tuple(row.values()) for row in shown]))
