"""What the trust verbs do: calibration, decisions on judges, plan."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from eval_pipeline.cli.console import LANGUAGE, emit, out, say, t
from eval_pipeline.cli.querying import table
from eval_pipeline.errors import EvaluationNotFound
from eval_pipeline.evaluation import reading as stored
from eval_pipeline.evaluation.project import Project
from eval_pipeline.korean import in_korean

EXIT = {"pass": 0, "fail": 1, "untested": 3, "inconclusive": 4}


def calibrate_pairs(
    file: Path, human_column: str, judge_column: str, annotator_columns: list[str], bar: float, as_json: bool
) -> int:
    """Stand-alone: any file of pairs. A pair with an unusable side is dropped and counted."""
    from eval_pipeline.intake.pairs import columns
    from eval_pipeline.stages import calibration

    human, judge, *people = columns(file, [human_column, judge_column, *annotator_columns])
    found = calibration.calibrate_pairs(
        human,
        judge,
        name=judge_column,
        bar=calibration.Bar(bar),
        annotators=(people[0], people[1]) if len(people) == 2 else None,
    )
    if as_json:
        emit(found.report)
    else:
        _print_calibration(found.report)
    return found.exit_code


def _print_calibration(found: dict[str, Any]) -> None:
    from eval_pipeline.report.summary import number, signed, span

    rho = found["spearman_rho"]
    word = "PROVISIONAL" if found["provisional"] else found["decision"].upper()
    say(f"{word}  rho {number(rho['value'], 4)}, " + t("limits", "한계") + f" {span(rho['lower'], rho['upper'])}, n {found['pair_count']}"
        + t(f" ({found['dropped_count']} dropped)", f" (제외 {found['dropped_count']})"))  # fmt: skip
    say(f"QWK {number(found['quadratic_weighted_kappa']['value'], 3)}, tau-b {number(found['kendall_tau_b']['value'], 3)}, "
        f"bias {signed(found['bias']['value'], 3)}, MAE {number(found['mean_absolute_error']['value'], 3)}, "
        + t("ceiling by marginals", "주변분포 상한") + f" {number(found['rho_ceiling_by_marginals']['value'], 3)}")  # fmt: skip
    if found["reason"]:
        say(t("Reason: ", "이유: ") + t(found["reason"], in_korean(found["reason"])))
    if found["human_agreement"] and found["human_agreement"]["value"] is not None:
        ceiling = found["rho_ceiling_by_human_noise"]["value"]
        agreed = number(found["human_agreement"]["value"], 4)
        say(
            t(f"People agree with each other at rho {agreed}; ceiling by human noise {number(ceiling, 3)}",
              f"사람끼리의 rho {agreed}, 사람 잡음에 따른 상한 {number(ceiling, 3)}")
        )  # fmt: skip
    if found["labels_needed"] and found["decision"] != "pass":
        say(
            t(
                f"About {found['labels_needed']} labels would settle it if rho is as measured.",
                f"rho가 측정값과 같다면 라벨 약 {found['labels_needed']}개면 결론이 납니다.",
            )
        )
    for warning in found["warnings"]:
        say(t("Note: ", "참고: ") + t(warning, in_korean(warning)))


def calibrations(project: Project, judge: str | None, metric: str | None, as_json: bool) -> int:
    """The calibrations of the latest evaluation, made anew when labels came in since; exit code of the worst."""
    from eval_pipeline.cli.progress import Bar
    from eval_pipeline.evaluation.recalibration import refresh

    evaluation_id = stored.newest(project)
    with Bar() as bar:
        refresh(
            project,
            stored.evaluations(project).row(by_predicate=pl.col("evaluation_id") == evaluation_id, named=True),
            bar,
        )
    seen = stored.view(project, evaluation_id)
    rows = seen.calibrations.filter(pl.col("stratum") == "all")
    if judge is not None:
        rows = rows.filter(pl.col("judge") == project.config.judge_name(judge))
    if metric is not None:
        project.metrics((metric,))
        rows = rows.filter(pl.col("metric") == metric)
    columns = ["metric", "judge", "label_provenance", "pair_count", "dropped_count", "spearman_rho", "rho_lower", "rho_upper",
               "bias", "decision", "is_provisional", "labels_needed", "reason"]  # fmt: skip
    if as_json:
        from eval_pipeline.stages.calibration import report

        emit([report(row) for row in rows.to_dicts()])
    else:
        out().print(table(columns, rows.select(columns).rows()))
    decisions = rows["decision"].to_list()
    return max((EXIT[decision] for decision in decisions), key=[0, 4, 1, 3].index, default=3)


def judges(project: Project, as_json: bool) -> None:
    """Calibration status and cost of every judge that judged."""
    from eval_pipeline.evaluation.judging_costs import judge_status

    rows = [{name: value for name, value in row.items() if name != "statistic"} for row in judge_status(project)]
    if as_json:
        emit(rows)
    elif rows:
        out().print(table(list(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        say(t("No judge has judged yet.", "아직 판정한 심판이 없습니다."))


def pick(project: Project, metric: str, as_json: bool) -> int:
    """The cheapest judge whose lower limit meets the bar after Holm; 3 when there is none."""
    from eval_pipeline.evaluation.judging_costs import cheapest

    project.metrics((metric,))
    found = cheapest(project, metric)
    if as_json:
        emit(found)
    elif found["judge"] is None:
        say(
            t(
                f"No judge meets the bar on {metric}: {found['reason']}",
                f"{metric}에서 기준을 만족하는 심판이 없습니다: {found['reason']}",
            )
        )
    else:
        say(
            t(
                f"{found['judge']} at ${found['cost_per_1k_usd']:.2f} per 1k scored items",
                f"{found['judge']}: 채점 1천 건당 ${found['cost_per_1k_usd']:.2f}",
            )
        )
    return 0 if found["judge"] else 3


def compare_judges(project: Project, old: str, new: str, as_json: bool) -> None:
    """The parallel baseline: old and new judge on the same responses. A new judge that has not judged judges them now."""
    from eval_pipeline.evaluation.judge_change import newest_by, parallel_baseline
    from eval_pipeline.stages.judge_comparison import change_log

    before = newest_by(project, old)
    if before is None:
        raise EvaluationNotFound(selector=old)
    rows = parallel_baseline(project, before, newest_by(project, new) or _judge_stored(project, before, new))
    if as_json:
        emit(rows)
        return
    columns = ["metric", "n", "mean_shift", "lower", "upper", "equivalent", "quadratic_weighted_kappa", "cvar10_shift", "rho_old",
               "rho_new", "decision"]  # fmt: skip
    out().print(table(columns, [tuple(row.get(name) for name in columns) for row in rows]))
    for row in rows:
        say(change_log(row, LANGUAGE))


def _judge_stored(project: Project, evaluation_id: str, judge: str) -> str:
    """Has another judge judge the responses of an evaluation."""
    from eval_pipeline.cli.progress import Bar
    from eval_pipeline.evaluation.steps import Options
    from eval_pipeline.launch import Target, evaluate

    row = stored.evaluations(project).row(by_predicate=pl.col("evaluation_id") == evaluation_id, named=True)
    with Bar() as bar:
        target = Target(row["dataset"], row["dataset_version"], row["system"], judge)
        return evaluate(project, target, Options(refresh=False), bar)


def accept(project: Project, name: str, message: str) -> None:
    """Logs the decision that makes a judge the judge of record."""
    from eval_pipeline.evaluation import judge_change

    row = judge_change.accept(project, name, message, os.environ.get("USER"), datetime.now(UTC))
    say(
        t(f"{row['judge']} ({row['judge_model']}) is judge of record: commit datasets/{row['dataset']}/judges.jsonl",
          f"{row['judge']}({row['judge_model']})이(가) 공식 심판입니다. datasets/{row['dataset']}/judges.jsonl을 커밋하세요")
    )  # fmt: skip


def plan(project: Project) -> None:
    """The evaluation plan."""
    from eval_pipeline.report.plan import plan_text

    seen = stored.latest_or_none(project)
    calibrations_ = seen.calibrations if seen else None
    out().print(plan_text(project.config, calibrations_, LANGUAGE), markup=False, soft_wrap=True)


def g_eval_steps(project: Project, metric: str, judge: str | None) -> None:
    """Prints the YAML lines that pin a G-Eval's steps."""
    import asyncio

    from eval_pipeline.evaluation.g_eval_steps import steps_yaml

    print(asyncio.run(steps_yaml(project, metric, project.config.judge_name(judge), LANGUAGE)), end="")
