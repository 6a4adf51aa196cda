"""What `gate` and `gate pin` do: decide anew, tell CI systems, pin a baseline."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from eval_pipeline.cli.console import LANGUAGE, emit, out, say, t
from eval_pipeline.evaluation import reading as stored
from eval_pipeline.evaluation.project import Project
from eval_pipeline.vocabulary import Language, Policy


def gate(
    project: Project, selector: str, policy: Policy, junit: Path | None, github: bool, comment: Path | None, as_json: bool,
    system: str | None,
) -> int:  # fmt: skip
    """Decides anew from what is stored."""
    from eval_pipeline.evaluation.trust import gate_case
    from eval_pipeline.report import github as on_github
    from eval_pipeline.report.machine import gate_json
    from eval_pipeline.stages import gating
    from eval_pipeline.store.warehouse import Warehouse

    evaluation_id = stored.newest(project, system) if selector == "latest" else stored.select(project, selector)
    row = stored.evaluations(project).filter(pl.col("evaluation_id") == evaluation_id).to_dicts()[0]
    decided = gating.decide(gate_case(project, row, Warehouse(project.warehouse), policy))
    rules = gating.rows(decided, evaluation_id, policy, datetime.now(UTC))
    if junit is not None:
        from eval_pipeline.report.junit import junit_xml

        junit.write_text(junit_xml(rules, evaluation_id, LANGUAGE, exit_code=decided.exit_code), encoding="utf-8")
    if comment is not None:
        comment.write_text(on_github.comment(_markdown(project, evaluation_id, rules)), encoding="utf-8")
    if github:
        on_github.write_step_summary(_markdown(project, evaluation_id, rules), os.environ.get("GITHUB_STEP_SUMMARY"))
        for line in on_github.annotations(rules, LANGUAGE):
            print(line)
    with on_github.inert_output() if github else nullcontext():
        if as_json:
            emit(gate_json(rules, decided.exit_code))
        else:
            _print_gate(rules)
    return decided.exit_code


def _markdown(project: Project, evaluation_id: str, rules: pl.DataFrame) -> str:
    from eval_pipeline.report.markdown import markdown

    return markdown(replace(stored.view(project, evaluation_id), gate=rules), LANGUAGE)


def _print_gate(rules: pl.DataFrame) -> None:
    from rich.text import Text

    from eval_pipeline.cli.console import printable
    from eval_pipeline.report.summary import COLOURS
    from eval_pipeline.report.words import rule_name, words

    names = words(LANGUAGE)
    evidence = "evidence_ko" if LANGUAGE == Language.KO else "evidence"
    for row in rules.to_dicts():
        text = printable(row[evidence] or row["evidence"])
        if row["rule"] == "decision":
            out().print(
                Text.assemble((row["verdict"], f"bold {COLOURS.get(row['verdict'], '')}"), f"  {row['evaluation_id']}")
            )
            continue
        name = "" if row["metric"] == "all" else printable(row["metric"])
        out().print(
            Text.assemble(
                (f"{row['verdict']:<14}", COLOURS.get(row["verdict"], "dim")),
                f"{name:<24}{printable(rule_name(row['rule'], names))}: {text}",
            )
        )


def pin(project: Project, selector: str, label: str) -> None:
    """Writes the pinned baseline into the dataset's folder."""
    from eval_pipeline.store.evidence import write_baseline
    from eval_pipeline.store.warehouse import Warehouse
    from eval_pipeline.tables import SCORES

    evaluation_id = stored.select(project, selector)
    row = stored.evaluations(project).filter(pl.col("evaluation_id") == evaluation_id).to_dicts()[0]
    path = write_baseline(
        project.dataset_folder(row["dataset"]), label, Warehouse(project.warehouse).read(SCORES, evaluation_id)
    )
    say(
        t(
            f"Pinned {evaluation_id} as {label}: commit {path}",
            f"{evaluation_id}을(를) {label}(으)로 고정: {path}를 커밋하세요",
        )
    )
