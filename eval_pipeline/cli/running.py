"""`run`, `status` and the dry run: what happens around one evaluation at the terminal."""

from __future__ import annotations

import json

from eval_pipeline.cli.console import LANGUAGE, emit, err, out, say, t
from eval_pipeline.cli.progress import Bar
from eval_pipeline.evaluation import reading
from eval_pipeline.evaluation.judges import Limits
from eval_pipeline.evaluation.project import Project
from eval_pipeline.evaluation.steps import STOPPED, Options
from eval_pipeline.vocabulary import Policy


def run(
    project: Project,
    *,
    dataset: str | None = None,
    system: str | None = None,
    judge: str | None = None,
    metrics: tuple[str, ...] = (),
    limit: int | None = None,
    max_cost_usd: float | None = None,
    max_calls: int | None = None,
    resume: bool = False,
    retry_invalid: bool = False,
    gate: Policy | None = None,
    batch: bool = False,
    as_json: bool = False,
    is_demo: bool = False,
) -> int:
    """Runs one evaluation and prints its summary; returns the exit code."""
    project.metrics(metrics)  # names are checked before anything heavy is imported
    options = Options(limit, metrics, Limits(max_calls, max_cost_usd), gate or Policy.PR, retry_invalid, batch=batch)
    name, _, tag = (dataset or "").partition("@")
    chosen = project.config.dataset_name(name or None)
    from eval_pipeline.launch import Target, evaluate, unfinished

    target = Target(
        chosen,
        tag or project.config.datasets[chosen].tag,
        project.config.system_name(system),
        project.config.judge_name(judge),
    )
    with Bar() as bar:
        evaluation_id = evaluate(project, target, options, bar, unfinished(project, target) if resume else None)
    return present(project, evaluation_id, gate=gate, as_json=as_json, is_demo=is_demo)


def present(project: Project, evaluation_id: str, *, gate: Policy | None, as_json: bool, is_demo: bool) -> int:
    """Prints one evaluation as `run` does; returns its exit code."""
    from eval_pipeline.report.machine import run_json
    from eval_pipeline.report.summary import summary_text

    seen = reading.view(project, evaluation_id)
    decision = reading.decision(project, seen)
    if as_json:
        emit(run_json(seen, database=str(project.database), report=str(reading.report_path(project, evaluation_id)),
                      exit_code=decision.exit_code))  # fmt: skip
    else:
        out().print(summary_text(seen, LANGUAGE))
        say(t("Database  ", "데이터베이스  ") + str(project.database))
        say(t("Report    ", "보고서        ") + str(reading.report_path(project, evaluation_id)))
    reason = seen.evaluation["partial_reason"] or ""
    if is_demo:
        if not as_json:
            say(
                t(
                    "Constructed labels certify no judge; that is why the gate blocks. Your own data: eval-pipeline init DIR",
                    "구성된(constructed) 라벨로는 심판을 인증할 수 없어 게이트가 막습니다. 자신의 데이터로 시작: eval-pipeline init DIR",
                )
            )
        return 0
    if reason.startswith(STOPPED):
        err().print(reason.removeprefix(STOPPED), markup=False)
        return 5
    return decision.exit_code if gate else 0


def status(project: Project, as_json: bool) -> None:
    """Runs of the Dagster instance that are not done, and evaluations without their row."""
    from eval_pipeline.launch import open_runs

    rows = open_runs(project)
    if as_json:
        emit(rows)
        return
    if not rows:
        say(t("Nothing is running and nothing is stuck.", "실행 중이거나 멈춘 것이 없습니다."))
    for row in rows:
        say(json.dumps(row, ensure_ascii=False))


def dry_run(project: Project, dataset: str | None, system: str | None, judge: str | None, metrics: tuple[str, ...],
            limit: int | None, as_json: bool, gate: Policy | None = None) -> None:  # fmt: skip
    """What a run would ask, without sending anything."""
    from eval_pipeline.cli.querying import table
    from eval_pipeline.evaluation.dry_run import estimate

    rows = estimate(project, dataset, system, judge, metrics, limit, gate or Policy.PR)
    if as_json:
        emit(rows)
        return
    columns = list(rows[0]) if rows else []
    out().print(table(columns, [tuple(row.values()) for row in rows]))
