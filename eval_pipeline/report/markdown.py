"""One evaluation as Markdown: for `report --format md`, step summaries and pull request comments."""

from __future__ import annotations

import polars as pl

from eval_pipeline.report.metadata import cell, markdown_table
from eval_pipeline.report.view import EvaluationView
from eval_pipeline.vocabulary import Language

MARKER = "<!-- eval-pipeline -->"
"""First line of a comment body, by which a later one finds and replaces it."""


def markdown(view: EvaluationView, language: Language) -> str:
    """The decision with its reasons, then the numbers. Every text of the data is escaped."""
    row = view.evaluation
    decision = view.gate.filter(pl.col("rule") == "decision")["verdict"].to_list()
    evidence = "evidence_ko" if language == Language.KO else "evidence"
    rules = view.gate.filter(pl.col("rule") != "decision")
    summaries = view.summaries.filter(pl.col("stratum") == "all")
    numbers = ["metric", "item_count", "scored_count", "no_response_count", "invalid_count", "mean", "mean_interval_lower",
               "mean_interval_upper", "mean_lower_bound", "mean_upper_bound", "cvar10", "invalid_share"]  # fmt: skip
    trust = ["metric", "label_provenance", "pair_count", "spearman_rho", "rho_lower", "rho_upper", "decision"]
    calibrations = view.calibrations.filter(pl.col("stratum") == "all")
    titles = ("게이트", "점수", "심판을 믿을 수 있는가?") if language == Language.KO else ("Gate", "Scores", "Can the judge be trusted?")
    head = f"{cell(row['dataset'])}@{cell(row['dataset_tag'])} · {cell(row['system'])} {cell(row['system_release'])} · {cell(row['judge_model'])}"
    return "\n".join([
        MARKER, f"## {decision[0] if decision else '–'}", "", head, "",
        f"### {titles[0]}", "", markdown_table(rules, ["verdict", "metric", "rule", evidence], 60), "",
        f"### {titles[1]}", "", markdown_table(summaries, numbers, 60), "",
        f"### {titles[2]}", "", markdown_table(calibrations, trust, 60), "",
    ])  # fmt: skip
